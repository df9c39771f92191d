import { fromBinary } from "@bufbuild/protobuf";
import { CaissonError } from "@caisson/contract/errors";
import { ErrorInfoSchema, fromDetails } from "@caisson/contract/status";

/** Longest error body that is read. Ours are far shorter. */
const maxErrorBytes = 64 * 1024;

/** The Connect protocol's names of the gRPC statuses. */
const statuses = [
  "ok",
  "canceled",
  "unknown",
  "invalid_argument",
  "deadline_exceeded",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
  "unauthenticated",
];

interface ErrorBody {
  code?: string;
  message?: string;
  details?: { type?: string; value?: string }[];
}

/** What a response that is not OK says. A server that is not ours is judged by its HTTP status. */
export async function errorFromResponse(response: Response): Promise<CaissonError> {
  const body = parse(await limitedText(response));
  if (body?.code && statuses.includes(body.code)) return errorFrom(body);
  const message = `the server answered ${response.status}`;
  if (response.status === 401) return new CaissonError("UNAUTHENTICATED", message);
  if (response.status === 403) return new CaissonError("FORBIDDEN", message);
  if (response.status === 404) return new CaissonError("METHOD_UNKNOWN", message);
  if (response.status === 429) return new CaissonError("RATE_LIMITED", message);
  if ([502, 503, 504].includes(response.status)) return new CaissonError("UNAVAILABLE", message);
  return new CaissonError("INTERNAL", message);
}

/** The error in a stream's last envelope, if there is one. */
export function errorFromEnd(payload: Uint8Array): CaissonError | undefined {
  const end = parse(new TextDecoder().decode(payload.subarray(0, maxErrorBytes))) as
    | { error?: ErrorBody }
    | undefined;
  if (!end) return new CaissonError("INTERNAL", "the server's answer could not be read");
  return end.error && errorFrom(end.error);
}

function errorFrom({ code = "unknown", message = "", details = [] }: ErrorBody): CaissonError {
  return fromDetails(statuses.indexOf(code), message || code, details.map(errorInfo));
}

function errorInfo({ type, value }: { type?: string; value?: string }) {
  if (type !== ErrorInfoSchema.typeName || value === undefined) return undefined;
  try {
    return fromBinary(
      ErrorInfoSchema,
      Uint8Array.from(atob(value), (character) => character.charCodeAt(0)),
    );
  } catch {
    return undefined;
  }
}

function parse(text: string): ErrorBody | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? body : undefined;
  } catch {
    return undefined;
  }
}

async function limitedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length > maxErrorBytes) break;
    }
  } catch {
    // The status alone has to do.
  }
  return text;
}
