import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { cookieName, hostOf, originOf, type Pass, tokenHeader } from "./gate.ts";

type Distinct = NodeJS.Dict<string[]>;

/** Of one connection, and so none of the next one's business. */
const ofConnection = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** What the program inside hears: itself as the host, and nothing that would let it or its pages in elsewhere. */
export function headersInside(headers: Distinct, pass: Pass, port: number): OutgoingHttpHeaders {
  const inside: OutgoingHttpHeaders = {};
  const [ours, theirs] = [originOf(pass), `http://localhost:${port}`];
  for (const [name, values = []] of Object.entries(headers)) {
    if (ofConnection.has(name) || name === tokenHeader || name === "host") continue;
    if (name === "cookie") {
      const others = values.map(withoutOurs).filter((cookies) => cookies !== "");
      if (others.length > 0) inside.cookie = others.join("; ");
    } else if (name === "origin") {
      inside.origin = values[0] === ours ? theirs : values[0];
    } else if (name === "referer") {
      // Its own pages are known to it under another name; whatever else somebody came from is not its business.
      if (values[0]?.startsWith(`${ours}/`)) inside.referer = theirs + values[0].slice(ours.length);
    } else {
      inside[name] = values.length === 1 ? values[0] : values;
    }
  }
  inside.host = `localhost:${port}`;
  inside["x-forwarded-host"] = hostOf(pass);
  inside["x-forwarded-proto"] = "http";
  return inside;
}

/** What the browser hears: addresses of the program as addresses of the preview. */
export function headersOutside(headers: Distinct, pass: Pass, port: number): OutgoingHttpHeaders {
  const outside: OutgoingHttpHeaders = {};
  for (const [name, values = []] of Object.entries(headers)) {
    if (ofConnection.has(name)) continue;
    if (name === "location") outside.location = relocated(values[0] ?? "", pass, port);
    else if (name === "set-cookie") {
      const kept = values
        .filter((cookie) => !isOurs(cookie))
        .map((cookie) => cookie.replace(/; *domain=[^;]*/gi, ""));
      if (kept.length > 0) outside["set-cookie"] = kept;
    } else outside[name] = values.length === 1 ? values[0] : values;
  }
  return outside;
}

/** A protocol that both ends change to, such as a WebSocket. */
export function upgradeOf(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return { connection: "Upgrade", upgrade: headers.upgrade };
}

function relocated(location: string, pass: Pass, port: number): string {
  const inside = new RegExp(
    `^https?://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]|0\\.0\\.0\\.0):${port}(?=[/?#]|$)`,
    "i",
  );
  return location.replace(inside, originOf(pass));
}

function withoutOurs(header: string): string {
  const pairs = header.split(";").map((pair) => pair.trim());
  return pairs.filter((pair) => pair !== "" && !isOurs(pair)).join("; ");
}

function isOurs(pair: string): boolean {
  return pair.split("=", 1)[0]!.trim() === cookieName;
}
