import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from "node:http2";
import { pipeline } from "node:stream";
import { type Pairs, valuesOf } from "../../egress/http/headers.ts";
import { readable } from "../decoding.ts";
import { cleaned, isGrpc, type Passage, without } from "../passing.ts";
import { Replacing } from "../replacing.ts";
import { unreachable } from "../secure.ts";
import { type Asked, outgoing, pairsOfRaw, regular } from "./headers.ts";
import type { Http2Upstream } from "./upstream.ts";

export interface StreamExchange {
  stream: ServerHttp2Stream;
  passage: Passage;
  upstream: Http2Upstream;
}

const { NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;

/** Sends a request on with its secrets, and its answer back without them. */
export function forwardStream(exchange: StreamExchange, asked: Asked, flags: number): void {
  const { stream, passage, upstream } = exchange;
  const path = passage.path(asked.path);
  const headers = passage.headers(asked.pairs);
  const [type = ""] = valuesOf(asked.pairs, "content-type");
  const [encoding] = valuesOf(asked.pairs, "content-encoding");
  const body = passage.body(type, encoding);
  // The only use of it that HTTP/2 knows, without which gRPC is not spoken.
  if (valuesOf(asked.pairs, "te").includes("trailers")) headers.push(["te", "trailers"]);
  if (isGrpc(type)) headers.push(["grpc-accept-encoding", "identity"]);
  if (valuesOf(asked.pairs, "expect").length > 0) stream.additionalHeaders({ ":status": 100 });
  const isPut = body.list.some(({ from, to }) => from.length !== to.length);
  upstream.session().then(
    (session) => {
      if (stream.destroyed) return;
      const endStream = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
      const request = session.request(
        {
          ":method": asked.method,
          ":path": path,
          ":scheme": "https",
          ":authority": asked.authority,
          ...outgoing(isPut ? without(headers, "content-length") : headers),
        },
        { endStream },
      );
      if (!endStream) pipeline(stream, new Replacing(body.list, body.found), request, () => {});
      tie(stream, request);
      request.on("response", (_headers, flags, raw: string[]) =>
        answer(exchange, asked.method, request, pairsOfRaw(raw), flags),
      );
    },
    () => refuseStream(stream, 502, unreachable),
  );
}

/** Each side's end before its time reaches the other. */
function tie(stream: ServerHttp2Stream, request: ClientHttp2Stream): void {
  request.on("error", () => {});
  request.on("close", () => {
    if (stream.closed || request.rstCode === NGHTTP2_NO_ERROR) return;
    if (stream.headersSent) stream.close(request.rstCode);
    else refuseStream(stream, 502, unreachable);
  });
  stream.on("close", () =>
    request.close(stream.rstCode === NGHTTP2_NO_ERROR ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL),
  );
}

function answer(
  { stream, passage }: StreamExchange,
  method: string,
  request: ClientHttp2Stream,
  raw: Pairs,
  flags: number,
): void {
  if (stream.destroyed) return;
  const masks = passage.masks();
  const status = Number(valuesOf(raw, ":status")[0] ?? 502);
  const body = readable(valuesOf(raw, "content-encoding")[0], status, method);
  const [coding = "identity"] = valuesOf(raw, "grpc-encoding");
  if (!body || coding !== "identity") {
    request.close(NGHTTP2_CANCEL);
    refuseStream(stream, 502, "the host's answer is encoded in a way that cannot be looked through");
    return;
  }
  const kept = cleaned(regular(raw), masks);
  const headers = outgoing(body.decoded ? without(kept, "content-encoding", "content-length") : kept);
  const endStream = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
  stream.respond({ ":status": status, ...headers }, { endStream, waitForTrailers: !endStream });
  if (endStream) return;
  let trailers: Pairs = [];
  request.on("trailers", (_headers, _flags, raw: string[]) => {
    trailers = cleaned(pairsOfRaw(raw), masks);
  });
  stream.on("wantTrailers", () => stream.sendTrailers(outgoing(trailers)));
  pipeline(request, body.decoder, new Replacing(masks), stream, (error) => {
    if (error && !stream.closed) stream.close(request.rstCode || NGHTTP2_INTERNAL_ERROR);
  });
}

/** An answer of our own. */
export function refuseStream(stream: ServerHttp2Stream, status: number, why: string): void {
  if (stream.destroyed || stream.closed) return;
  if (stream.headersSent) {
    stream.close(NGHTTP2_INTERNAL_ERROR);
    return;
  }
  stream.respond({ ":status": status, "content-type": "text/plain; charset=utf-8" });
  stream.end(`caisson: ${why}\n`);
}
