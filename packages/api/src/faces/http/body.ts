import { CaissonError, rules } from "@caisson/contract";
import type { Request } from "./types.ts";

/** Reads a body up to `limit` bytes; a longer one is refused before it is held. */
export async function readBody(
  request: Request,
  limit: number = rules.sizes.request_body_bytes,
): Promise<Buffer> {
  checkEncoding(request);
  if (declaredLength(request) > limit) throw tooLarge(limit);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > limit) throw tooLarge(limit);
    chunks.push(chunk as Buffer);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

/** Bodies come as they are: what unpacks to a thousand times its size is never unpacked. */
export function checkEncoding(request: Request): void {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new CaissonError("INVALID_INPUT", "compressed bodies are not accepted");
  }
}

export function declaredLength(request: Request): number {
  const length = Number(request.headers["content-length"] ?? 0);
  return Number.isSafeInteger(length) && length >= 0 ? length : Number.POSITIVE_INFINITY;
}

export function hasBody(request: Request): boolean {
  if (request.httpVersionMajor >= 2) return !request.complete;
  return request.headers["transfer-encoding"] !== undefined || declaredLength(request) > 0;
}

function tooLarge(limit: number): CaissonError {
  return new CaissonError("TOO_LARGE", `a body may have at most ${limit} bytes`);
}
