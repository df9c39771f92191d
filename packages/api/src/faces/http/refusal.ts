import { toBinary } from "@bufbuild/protobuf";
import type { CaissonError } from "@caisson/contract";
import { ErrorInfoSchema, encodeStatus, toErrorInfo } from "@caisson/contract/status";
import { discard } from "./errors.ts";
import type { Request, Response } from "./types.ts";

const connectCodes: Readonly<Record<string, string>> = { CANCELLED: "canceled" };

/** Refuses a call before its body is read, in the form that its protocol understands. */
export function refuseCall(
  request: Request,
  response: Response,
  error: CaissonError,
  requestId: string,
): void {
  const type = request.headers["content-type"] ?? "";
  if (type.startsWith("application/grpc")) refuseGrpc(request, response, error, requestId, type);
  else if (type.startsWith("application/connect+"))
    refuseConnectStream(request, response, error, requestId, type);
  else refuseConnect(request, response, error, requestId);
}

/** A response of headers alone: gRPC's trailers-only form, which gRPC-Web shares. */
function refuseGrpc(
  request: Request,
  response: Response,
  error: CaissonError,
  requestId: string,
  type: string,
): void {
  response.writeHead(200, {
    "content-type": type,
    "grpc-status": String(error.statusNumber),
    "grpc-message": encodeURIComponent(error.message),
    "grpc-status-details-bin": unpadded(encodeStatus(error, requestId)),
    "x-request-id": requestId,
  });
  finish(request, response, "");
}

function refuseConnectStream(
  request: Request,
  response: Response,
  error: CaissonError,
  requestId: string,
  type: string,
): void {
  const json = Buffer.from(JSON.stringify({ error: connectError(error, requestId) }));
  const head = Buffer.alloc(5);
  head[0] = 2;
  head.writeUInt32BE(json.length, 1);
  response.writeHead(200, { "content-type": type, "x-request-id": requestId });
  finish(request, response, Buffer.concat([head, json]));
}

function refuseConnect(request: Request, response: Response, error: CaissonError, requestId: string): void {
  const body = JSON.stringify(connectError(error, requestId));
  response.writeHead(error.httpStatus, { "content-type": "application/json", "x-request-id": requestId });
  finish(request, response, body);
}

function connectError(error: CaissonError, requestId: string) {
  return {
    code: connectCodes[error.status] ?? error.status.toLowerCase(),
    message: error.message,
    details: [
      {
        type: ErrorInfoSchema.typeName,
        value: unpadded(toBinary(ErrorInfoSchema, toErrorInfo(error, requestId))),
      },
    ],
  };
}

function finish(request: Request, response: Response, body: string | Buffer): void {
  response.end(body);
  if (!request.complete) discard(request);
}

function unpadded(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64").replace(/=+$/, "");
}
