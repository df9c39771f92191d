// Repositories over HTTP, as git's own server program gives them.
import { spawn, spawnSync } from "node:child_process";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface GitServer extends AsyncDisposable {
  port: number;
}

/** Serves every repository below `root`, to be read. */
export async function startGitServer(root: string): Promise<GitServer> {
  const programs = spawnSync("git", ["--exec-path"], { encoding: "utf8" }).stdout.trim();
  const server = createServer((request, response) =>
    serve(`${programs}/git-http-backend`, root, request, response),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function serve(program: string, root: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url!, "http://localhost");
  const child = spawn(program, {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "safe.directory",
      GIT_CONFIG_VALUE_0: "*",
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers["content-type"],
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"],
      GIT_PROTOCOL: request.headers["git-protocol"] as string | undefined,
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  request.pipe(child.stdin);
  child.stdin.on("error", () => {});
  let head = Buffer.alloc(0);
  const onHead = (data: Buffer) => {
    head = Buffer.concat([head, data]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    for (const line of head.toString("latin1", 0, end).split("\r\n")) {
      const [name, value = ""] = line.split(": ", 2) as [string, string?];
      if (name === "Status") response.statusCode = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    child.stdout.off("data", onHead);
    response.write(head.subarray(end + 4));
    child.stdout.pipe(response);
  };
  child.stdout.on("data", onHead);
}
