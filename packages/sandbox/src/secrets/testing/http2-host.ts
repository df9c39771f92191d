import { createSecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { Authority } from "../authority.ts";
import { listening } from "./listening.ts";

/** A real TLS server that speaks HTTP/2 alone and answers each stream with what it gets as it comes, as gRPC's servers do. */
export async function startHttp2Host(name: string) {
  const record = Authority.make("a test's own authority");
  const context = new Authority(record).contextFor(name);
  const heard: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createSecureServer({ SNICallback: (_name, done) => done(null, context) });
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const said = { headers, body: "" };
    heard.push(said);
    stream.on("error", () => {});
    const token = String(headers["x-token"] ?? "");
    const type = headers["content-type"] ?? "text/plain";
    const path = headers[":path"]!;
    if (path.endsWith("/Refuse")) {
      const trailers = { "grpc-status": "7", "grpc-message": token };
      stream.respond({ ":status": 200, "content-type": type, ...trailers }, { endStream: true });
      return;
    }
    if (path.endsWith("/Break")) return stream.close(2);
    const coding = path.endsWith("/Packed") ? { "grpc-encoding": "gzip" } : {};
    stream.respond(
      { ":status": 200, "content-type": type, "x-echo": token, ...coding },
      { waitForTrailers: true },
    );
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "x-echo-last": token }));
    stream.on("data", (piece: Buffer) => {
      said.body += piece.toString("latin1");
      stream.write(piece);
    });
    stream.on("end", () => stream.end());
  });
  return {
    ...(await listening(server)),
    heard,
    certificate: record.certificate,
    [Symbol.dispose]() {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
}
