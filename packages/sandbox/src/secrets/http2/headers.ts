import type { OutgoingHttpHeaders } from "node:http2";
import { ambiguity, namesTarget, type Pairs, valuesOf } from "../../egress/http/headers.ts";

export interface Asked {
  method: string;
  path: string;
  authority: string;
  pairs: Pairs;
}

/** As Node gives them: names and values in turn. */
export function pairsOfRaw(raw: readonly string[]): Pairs {
  const pairs: Pairs = [];
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([raw[i]!, raw[i + 1]!]);
  return pairs;
}

export function regular(pairs: Pairs): Pairs {
  return pairs.filter(([name]) => !name.startsWith(":"));
}

/** What a request asks, or why it is not passed on: every name of its host must be the judged one. */
export function readRequest(raw: readonly string[], target: { name: string; port: number }): Asked | string {
  const all = pairsOfRaw(raw);
  const only = (name: string) => {
    const values = valuesOf(all, name);
    return values.length === 1 ? values[0]! : "";
  };
  const pairs = regular(all);
  const [method, path] = [only(":method"), only(":path")];
  const hosts = [...valuesOf(all, ":authority"), ...valuesOf(pairs, "host")];
  if (only(":scheme") !== "https" || !method || method === "CONNECT" || !/^[/*]/.test(path))
    return "the request is not one for a resource of its host";
  const why = ambiguity(pairs);
  if (why || valuesOf(pairs, "transfer-encoding").length > 0)
    return `the request could be read in two ways: ${why ?? "it states a transfer coding"}`;
  const [authority] = hosts;
  if (authority === undefined || hosts.some((host) => !namesTarget(host, target.name, target.port, 443)))
    return "the request names another host than its connection";
  return { method, path, authority, pairs: pairs.filter(([name]) => name !== "host") };
}

/** In HTTP/2 names are in lower case, and nothing in them is about one connection alone. */
export function outgoing(pairs: Pairs): OutgoingHttpHeaders {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    const before = headers[key];
    headers[key] = before === undefined ? value : [before, value].flat();
  }
  return headers;
}
