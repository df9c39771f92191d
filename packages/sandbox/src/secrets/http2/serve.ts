// HTTP/2 for programs that speak nothing else, gRPC above all. Node reads and writes both sides; requests are judged, filled in and
// their answers looked through as in HTTP/1.1.
import { performServerHandshake, type ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { Refusal } from "../../egress/refusal.ts";
import type { JudgedTarget } from "../../egress/seams.ts";
import type { Passage } from "../passing.ts";
import { forwardStream, refuseStream } from "./forward.ts";
import { readRequest } from "./headers.ts";
import { Http2Upstream } from "./upstream.ts";

const maxHeaderBytes = 64 * 1024;
const maxStreams = 100;

/** `newPassage` for each request. Ends with the connection. */
export function serveHttp2(
  secure: TLSSocket,
  target: JudgedTarget,
  roots: readonly string[],
  newPassage: () => Passage,
): void {
  const upstream = new Http2Upstream(target, roots);
  // As any stream: of a TLS socket Node expects that a server of its own has accepted it.
  const session = performServerHandshake(Duplex.from({ readable: secure, writable: secure }), {
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes },
  });
  session.on("error", () => secure.destroy());
  session.on("close", () => {
    upstream.close();
    secure.destroy();
  });
  session.on("stream", (stream: ServerHttp2Stream, _headers, flags: number, raw: string[]) => {
    stream.on("error", () => {});
    const asked = readRequest(raw, target);
    if (typeof asked !== "string") {
      forwardStream({ stream, passage: newPassage(), upstream }, asked, flags);
      return;
    }
    target.refused(Refusal.because("host header", asked));
    refuseStream(stream, 421, asked);
  });
}
