// An index says in its `config.json` where the crates lie, often on another host than its own. Cargo keeps that file once it has
// been there; before that the index is asked, as cargo would.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { readText } from "./read.ts";

const answersWithinMs = 3000;
const mostBytes = 64 * 1024;

/** The URL below which a sparse index has its crates; undefined if nobody knows yet. */
export async function downloadsOf(index: string, cargoHome: string): Promise<string | undefined> {
  if (!/^https?:/.test(index) || !URL.canParse(index)) return undefined;
  const url = new URL(index);
  return downloadsIn((await kept(url.hostname, cargoHome)) ?? (await fetched(url)));
}

async function kept(hostname: string, cargoHome: string): Promise<string | undefined> {
  const dir = join(cargoHome, "registry/index");
  const names = await readdir(dir).catch(() => []);
  const name = names.find(
    (one) => one.startsWith(`${hostname}-`) && /^[0-9a-f]+$/.test(one.slice(hostname.length + 1)),
  );
  return name && readText(join(dir, name, "config.json"));
}

async function fetched(index: URL): Promise<string | undefined> {
  const base = index.href.endsWith("/") ? index.href : `${index.href}/`;
  try {
    const signal = AbortSignal.timeout(answersWithinMs);
    const response = await fetch(new URL("config.json", base), { signal, redirect: "error" });
    if (!response.ok || !response.body) return undefined;
    let text = "";
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (text.length > mostBytes) return undefined;
    }
    return text;
  } catch {
    return undefined;
  }
}

function downloadsIn(text: string | undefined): string | undefined {
  try {
    const { dl } = JSON.parse(text ?? "{}") as { dl?: unknown };
    // Markers such as `{crate}` stand for parts of the path.
    return typeof dl === "string" && URL.canParse(dl) ? dl : undefined;
  } catch {
    return undefined;
  }
}
