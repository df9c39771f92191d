// Serves the SDK's own sources to a browser, types stripped, with an import map instead of a bundler.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { root } from "../../support/daemon.ts";

const protobuf = "/node_modules/@bufbuild/protobuf/dist/esm";

/** Bare names to files, by what the packages themselves export. */
function importMap(): string {
  const imports: Record<string, string> = {
    "@bufbuild/protobuf": `${protobuf}/index.js`,
    "@bufbuild/protobuf/wkt": `${protobuf}/wkt/index.js`,
    "@bufbuild/protobuf/wire": `${protobuf}/wire/index.js`,
    "@bufbuild/protobuf/codegenv2": `${protobuf}/codegenv2/index.js`,
    "@bufbuild/protobuf/reflect": `${protobuf}/reflect/index.js`,
  };
  for (const name of ["client", "contract"]) {
    const { exports } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
    for (const [path, file] of Object.entries<string>(exports)) {
      imports[normalize(join(`@caisson/${name}`, path)).replace(/\/$/, "")] = join(`/packages/${name}`, file);
    }
  }
  return JSON.stringify({ imports });
}

/** A page with one module, given later, and what it reports. */
export async function startSite() {
  let module = "";
  const { promise: report, resolve } = Promise.withResolvers<string>();
  const page = `<!doctype html><meta charset="utf-8"><script type="importmap">${importMap()}</script>
<script>onerror = (m) => fetch("/report", { method: "POST", body: JSON.stringify({ error: String(m) }) });
onunhandledrejection = (e) => fetch("/report", { method: "POST", body: JSON.stringify({ error: String(e.reason?.stack ?? e.reason) }) });</script>
<script type="module" src="/work.js"></script>`;
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url!, "http://site");
    try {
      if (pathname === "/") return response.writeHead(200, { "content-type": "text/html" }).end(page);
      if (pathname === "/work.js")
        return response.writeHead(200, { "content-type": "text/javascript" }).end(module);
      if (pathname === "/report") {
        let text = "";
        for await (const part of request) text += part;
        resolve(text);
        return response.end();
      }
      const source = readFileSync(join(root, normalize(pathname)), "utf8");
      const script = pathname.endsWith(".ts") ? stripTypeScriptTypes(source) : source;
      response.writeHead(200, { "content-type": "text/javascript" }).end(script);
    } catch {
      response.writeHead(404).end();
    }
  }).listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    report,
    serve(text: string) {
      module = text;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
