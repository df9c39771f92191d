import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** A preview's address and what lets somebody in. */
export interface Pass {
  /** The first label of its name: an origin of its own, which shares no cookies with others. */
  label: string;
  hostPort: number;
  token: string;
}

export const cookieName = "caisson-preview";
/** Carries the token for programs that are no browsers. */
export const tokenHeader = "x-caisson-token";
const ownPaths = "/.caisson/";

export type Verdict =
  | { kind: "pass" }
  /** The token was right: from now on the cookie lets the browser in. */
  | { kind: "enter"; cookie: string }
  | { kind: "refuse"; status: number; why: string };

export function hostOf({ label, hostPort }: Pass): string {
  return `${label}.localhost:${hostPort}`;
}

export function originOf(pass: Pass): string {
  return `http://${hostOf(pass)}`;
}

/** Where a browser begins. The token is in no address after it. */
export function entryUrl(pass: Pass): string {
  return `${originOf(pass)}${ownPaths}open?token=${pass.token}`;
}

/** The cookie says that the token was known, not which it is. */
export function cookieOf(pass: Pass): string {
  return hash("sha256", `caisson preview cookie ${pass.label} ${pass.token}`);
}

/** Whether a request may go on into the sandbox. */
export function judge(request: IncomingMessage, pass: Pass): Verdict {
  const { headers, url = "" } = request;
  const name = hostOf(pass);
  if (headers.host !== name && headers.host !== `127.0.0.1:${pass.hostPort}`) {
    return refuse(421, "this is not the host that the request names");
  }
  if (!url.startsWith("/")) return refuse(400, "the request names no path");
  if (url.startsWith(ownPaths)) return enter(request, pass);
  const token = headers[tokenHeader];
  if (typeof token === "string") {
    return same(token, pass.token) ? { kind: "pass" } : refuse(403, "the token is not right");
  }
  // By its address alone it would share the cookies of everything else on this machine.
  if (headers.host !== name || !cookiesOf(headers.cookie).some((cookie) => same(cookie, cookieOf(pass)))) {
    return refuse(403, "open the address that `caisson port forward` printed");
  }
  return isOwn(request, originOf(pass))
    ? { kind: "pass" }
    : refuse(403, "the request comes from another site");
}

function enter({ headers, method, url }: IncomingMessage, pass: Pass): Verdict {
  const match = /^\/\.caisson\/open\?token=([\w-]{1,128})$/.exec(url ?? "");
  if (!match || method !== "GET" || headers.host !== hostOf(pass))
    return refuse(404, "there is nothing here");
  if (!same(match[1]!, pass.token)) return refuse(403, "the token is not right");
  const cookie = `${cookieName}=${cookieOf(pass)}; Path=/; HttpOnly; SameSite=Lax`;
  return { kind: "enter", cookie };
}

/** Not sent by another site's page, which a browser would give our cookie to. */
function isOwn({ headers, method }: IncomingMessage, origin: string): boolean {
  if (headers.origin !== undefined && headers.origin !== origin) return false;
  const site = headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return true;
  // A link that was followed.
  const navigates = headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
  return navigates && (method === "GET" || method === "HEAD");
}

function cookiesOf(header: string | undefined): string[] {
  return (header ?? "").split(";").flatMap((pair) => {
    const [name, value] = pair.trim().split("=", 2);
    return name === cookieName && value !== undefined ? [value] : [];
  });
}

/** In the same time, however much of it is right. */
function same(given: string, right: string): boolean {
  return timingSafeEqual(hash("sha256", given, "buffer"), hash("sha256", right, "buffer"));
}

function refuse(status: number, why: string): Verdict {
  return { kind: "refuse", status, why };
}
