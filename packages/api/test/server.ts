import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiOptions, createApi } from "../src/index.ts";
import { fakeEngine, fakeKeys, fakeStore, system, type Watched } from "./fakes.ts";

/** Every face on fakes: a Unix socket and a port. */
export async function startServer(options: Partial<ApiOptions> = {}) {
  const watched: Watched = { argv: [], ended: [], uploads: [], aborted: 0 };
  const logged: { message: string; fields: Record<string, unknown> | undefined }[] = [];
  const api = createApi({
    engine: fakeEngine(watched),
    store: fakeStore(),
    keys: fakeKeys(),
    system,
    log: (_level, message, fields) => void logged.push({ message, fields }),
    ...options,
  });
  const dir = mkdtempSync(join(tmpdir(), "caisson-api-"));
  const socket = join(dir, "api.sock");
  await api.listenUnix(socket);
  const port = await api.listenTcp("127.0.0.1", 0);
  return {
    api,
    socket,
    port,
    url: `http://127.0.0.1:${port}`,
    watched,
    logged,
    async [Symbol.asyncDispose]() {
      await api.close();
      rmSync(dir, { recursive: true });
    },
  };
}
