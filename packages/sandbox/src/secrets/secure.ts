import { isIP } from "node:net";
import { connect, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import type { JudgedTarget } from "../egress/seams.ts";

const handshakeWithinMs = 15_000;
const contexts = new WeakMap<readonly string[], SecureContext>();

/** What a program is told: what went wrong may name what was sent. */
export const unreachable = "the host could not be reached, or its certificate is not to be trusted";

/** TLS to the judged address of a host, which is verified with `roots`. */
export async function connectSecurely(
  target: JudgedTarget,
  roots: readonly string[],
  protocols: string[],
): Promise<TLSSocket> {
  const { name } = target;
  const socket = await target.dial();
  const secure = connect({
    socket,
    secureContext: contextOf(roots),
    host: name,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ALPNProtocols: protocols,
    rejectUnauthorized: true,
  });
  const timer = setTimeout(() => secure.destroy(), handshakeWithinMs).unref();
  try {
    await new Promise<void>((resolve, reject) => {
      secure.once("secureConnect", resolve);
      secure.once("error", reject);
      secure.once("close", () => reject(new Error("the host closed the connection")));
    });
  } catch (error) {
    target.failed(`no TLS with ${name}: ${reasonOf(error)}`);
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return secure;
}

/** Reading a hundred and fifty certificates takes its time: once is enough. */
function contextOf(roots: readonly string[]): SecureContext {
  const context = contexts.get(roots) ?? createSecureContext({ ca: [...roots] });
  contexts.set(roots, context);
  return context;
}

/** A code of Node's or OpenSSL's: their messages may hold what the host says. */
function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  return /^[A-Z0-9_]+$/.test(code) ? code : "the host ended the handshake";
}
