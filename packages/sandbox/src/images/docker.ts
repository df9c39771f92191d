// Images of the Docker engine on this host, by its API.
import { type IncomingMessage, request } from "node:http";
import { CaissonError } from "@caisson/contract";

const answerWithinMs = 30_000;

/** The archive that `docker save NAME` would write. */
export async function* dockerArchive(socket: string, name: string): AsyncGenerator<Buffer> {
  const response = await ask(socket, `/images/${encodeURIComponent(name)}/get`);
  if (response.statusCode === 404) {
    response.resume();
    throw new CaissonError("IMAGE_NOT_FOUND", `the Docker engine has no image ${name}`);
  }
  if (response.statusCode !== 200) {
    response.resume();
    throw new CaissonError("UNAVAILABLE", `the Docker engine answered ${response.statusCode}`);
  }
  yield* response as AsyncIterable<Buffer>;
}

function ask(socketPath: string, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path, headers: { host: "docker" }, timeout: answerWithinMs }, resolve);
    call.on("timeout", () => call.destroy(new Error("no answer")));
    call.on("error", (cause) =>
      reject(new CaissonError("UNAVAILABLE", "the Docker engine does not answer on its socket", { cause })),
    );
    call.end();
  });
}
