import type { CallContext, FileInfo, ReadFileRequest } from "@caisson/contract";
import type { Response } from "../http/types.ts";
import type { RestRoute } from "./routes.ts";
import { writePart } from "./writer.ts";

type Fields = Record<string, unknown>;

/** Sends a stream's bytes as the body. Throws only before anything was sent; later it breaks off. */
export async function sendRaw(
  route: RestRoute,
  request: unknown,
  messages: AsyncIterable<unknown>,
  response: Response,
  call: CallContext,
): Promise<void> {
  const field = route.responseField!.localName;
  try {
    for await (const message of messages as AsyncIterable<Fields>) {
      if (!response.headersSent) response.writeHead(200, headers(call, message, request));
      const data = message[field] as Uint8Array | undefined;
      if (data !== undefined && data.length > 0) await writePart(response, data);
    }
    if (!response.headersSent) response.writeHead(200, headers(call, {}, request));
    response.end();
  } catch (thrown) {
    if (!response.headersSent) throw thrown;
    response.destroy();
  }
}

function headers(call: CallContext, first: Fields, request: unknown): Record<string, string> {
  const info = first.info as FileInfo | undefined;
  return {
    "content-type": "application/octet-stream",
    // What comes out of a sandbox is never a page of ours.
    "content-security-policy": "sandbox",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "x-request-id": call.requestId,
    ...(info === undefined ? {} : fileHeaders(info, request as ReadFileRequest)),
  };
}

function fileHeaders(info: FileInfo, { offset, length }: ReadFileRequest): Record<string, string> {
  const rest = info.size > offset ? info.size - offset : 0n;
  const sent = length > 0n && length < rest ? length : rest;
  return {
    "content-length": String(sent),
    ...(/^[\x21\x23-\x7e]{1,128}$/.test(info.etag) ? { etag: `"${info.etag}"` } : {}),
  };
}
