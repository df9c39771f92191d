// The other ways to call: Connect, gRPC-Web and gRPC, and ttRPC on a socket. Each asks for the same and compares.
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import type { Server } from "./server.ts";
import { type Case, expect, same } from "./suite.ts";

const method = "/caisson.v1.SystemService/GetCapabilities";
const unknown = "/caisson.v1.SystemService/NoSuchMethod";
/** A length-prefixed message without fields. */
const emptyFrame = Buffer.alloc(5);

export const faces: Case[] = [
  {
    id: "faces.connect",
    must: "answer by Connect, with JSON, and with its own error codes",
    async run(server) {
      const rest = await server.call("/v1/capabilities");
      const answer = await server.call(method, {
        method: "POST",
        headers: { "connect-protocol-version": "1" },
        body: {},
      });
      same([answer.version, answer.contract], [rest.version, rest.contract], "the same answer");
    },
  },
  {
    id: "faces.grpc_web",
    must: "answer by gRPC-Web",
    async run(server) {
      const { version } = await server.call("/v1/capabilities");
      const headers = { "content-type": "application/grpc-web+proto" };
      const { bytes } = await server.send(method, { method: "POST", headers, body: emptyFrame });
      expect(bytes.includes(version), "the version is in the message");
      expect(/grpc-status: ?0/i.test(bytes.toString("latin1")), "status 0 in the trailer");
    },
  },
  {
    id: "faces.grpc",
    must: "answer by gRPC over HTTP/2 without TLS, errors as statuses with ErrorInfo",
    async run(server) {
      const { version } = await server.call("/v1/capabilities");
      const good = await grpc(server, method, emptyFrame);
      same(good.status, "0", "grpc-status");
      expect(good.bytes.includes(version), "the version is in the message");
      same((await grpc(server, unknown, emptyFrame)).status, "12", "an unknown method is UNIMPLEMENTED");
      // Field 1, a sandbox that is not there.
      const id = Buffer.from("sb_0000000000000000");
      const message = Buffer.concat([Buffer.from([0x0a, id.length]), id]);
      const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
      const missing = await grpc(server, "/caisson.v1.SandboxService/GetSandbox", frame);
      same(missing.status, "5", "NOT_FOUND");
      const details = Buffer.from(missing.details, "base64").toString("latin1");
      expect(details.includes("google.rpc.ErrorInfo") && details.includes("SANDBOX_NOT_FOUND"), "ErrorInfo");
    },
  },
  {
    id: "faces.ttrpc",
    must: "answer by ttRPC on the Unix socket",
    on: "socket",
    async run(server) {
      const { version } = await server.call("/v1/capabilities");
      const text = (field: number, value: string) =>
        Buffer.from([(field << 3) | 2, value.length, ...Buffer.from(value)]);
      const request = Buffer.concat([text(1, "caisson.v1.SystemService"), text(2, "GetCapabilities")]);
      const header = Buffer.alloc(10);
      header.writeUInt32BE(request.length, 0);
      header.writeUInt32BE(1, 4);
      header[8] = 1;
      const answer = await exchange(server.address.socket!, Buffer.concat([header, request]));
      same([answer.readUInt32BE(4), answer[8]], [1, 2], "a response on the same stream");
      expect(answer.includes(version), "the version is in the message");
    },
  },
];

async function grpc(server: Server, path: string, frame: Buffer) {
  const { url, socket, key } = server.address;
  const session = connectHttp2(
    url ?? "http://localhost",
    socket ? { createConnection: () => connect(socket) } : {},
  );
  try {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc+proto",
      te: "trailers",
      ...(key ? { authorization: `Bearer ${key}` } : {}),
    });
    const found: Record<string, unknown> = {};
    stream.on("response", (headers) => Object.assign(found, headers));
    stream.on("trailers", (trailers) => Object.assign(found, trailers));
    stream.end(frame);
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part as Buffer);
    const bytes = Buffer.concat(parts);
    return { status: String(found["grpc-status"]), details: String(found["grpc-status-details-bin"]), bytes };
  } finally {
    session.close();
  }
}

/** Sends one frame and takes one. */
function exchange(path: string, frame: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let taken = Buffer.alloc(0);
    socket.on("error", reject);
    socket.on("data", (part) => {
      taken = Buffer.concat([taken, part]);
      if (taken.length < 10 || taken.length < 10 + taken.readUInt32BE(0)) return;
      socket.destroy();
      resolve(taken);
    });
    socket.write(frame);
  });
}
