import { CaissonError, Scope, type ServedService } from "@caisson/contract";
import { scopeOf } from "../../auth/identity.ts";
import type { Log } from "../../deps.ts";
import type { ConnectHandler } from "../connect/handler.ts";
import { handleRest } from "../rest/handler.ts";
import { createRestRoutes, findRoute } from "../rest/routes.ts";
import { createRoutes } from "../routes.ts";
import { beginHttpCall } from "./call.ts";
import { answerCors } from "./cors.ts";
import { sendError } from "./errors.ts";
import type { Gate } from "./gate.ts";
import { ownPages, type Page, sendPage } from "./pages.ts";
import { refuseCall } from "./refusal.ts";
import type { HttpCall, Request, Response } from "./types.ts";

export interface HttpOptions {
  services: readonly ServedService[];
  /** Further things to GET, by path. */
  pages: Readonly<Record<string, Page>>;
  log: Log;
}

export type HttpHandler = (gate: Gate, request: Request, response: Response) => void;

/** What a path turned out to be, and what it needs. */
type Target =
  | { kind: "page"; page: Page; scope: Scope }
  | { kind: "rest"; match: NonNullable<ReturnType<typeof findRoute>>; scope: Scope }
  | { kind: "rpc"; scope: Scope };

/** Longest path with its query. */
const maxUrlBytes = 16 * 1024;

/** Everything that is spoken over HTTP: REST, gRPC, gRPC-Web, Connect and a few pages. */
export function createHttpHandler({ services, pages, log }: HttpOptions): HttpHandler {
  const rpcs = createRoutes(services);
  const rest = createRestRoutes(services);
  const allPages = new Map(Object.entries({ ...ownPages, ...pages }));
  let connect: Promise<ConnectHandler> | undefined;
  const connectHandler = () => {
    connect ??= import("../connect/handler.ts").then((face) => face.createConnectHandler(services, log));
    return connect;
  };

  const findTarget = (verb: string, path: string): Target => {
    const rpc = rpcs.get(path.slice(1));
    if (rpc !== undefined) return { kind: "rpc", scope: scopeOf(rpc.method) };
    const page = allPages.get(path);
    if (page !== undefined && verb === "GET") return { kind: "page", page, scope: page.scope };
    const match = findRoute(rest, verb, path);
    if (match !== undefined) return { kind: "rest", match, scope: scopeOf(match.route.method) };
    if (looksLikeCall(path)) throw new CaissonError("METHOD_UNKNOWN", "the contract has no such method");
    throw new CaissonError("NOT_FOUND", "there is nothing at this path for this HTTP method");
  };

  const handle = async (gate: Gate, request: Request, response: Response): Promise<void> => {
    const { path, query } = splitUrl(request.url ?? "");
    const begun = beginHttpCall(request, response, path, query);
    const isRpc = rpcs.has(path.slice(1)) || looksLikeCall(path);
    let target: Target;
    let call: HttpCall;
    try {
      if (answerCors(request, response, gate.origin(request))) return;
      target = findTarget(request.method ?? "", path);
      const { actor, scopes } = await gate.admit(request, target.scope);
      const mayApprove = scopes.has(Scope.APPROVE);
      const seesAll = scopes.has(Scope.ALL) || scopes.has(Scope.ADMIN);
      call = { ...begun, actor: actor === "" ? "anonymous" : actor, mayApprove, seesAll };
    } catch (thrown) {
      const error = CaissonError.from(thrown);
      if (error.code === "INTERNAL")
        log("error", "a request failed", { request_id: begun.requestId, error: error.cause });
      if (isRpc) refuseCall(request, response, error, begun.requestId);
      else sendError(request, response, error, begun.requestId);
      return;
    }
    if (target.kind === "page") await sendPage(target.page, response, call);
    else if (target.kind === "rest") await handleRest(target.match, request, response, call, log);
    else (await connectHandler())(request, response, call);
  };

  return (gate, request, response) => {
    request.on("error", ignore);
    response.on("error", ignore);
    handle(gate, request, response).catch((thrown: unknown) => {
      log("error", "a request failed", { error: thrown });
      sendError(request, response, CaissonError.from(thrown), "");
    });
  };
}

/** Only the origin form is served, and exactly as it was sent: nothing is normalised before it is judged. */
function splitUrl(url: string): { path: string; query: string } {
  if (!url.startsWith("/") || url.length > maxUrlBytes) return { path: "", query: "" };
  const question = url.indexOf("?");
  return question < 0
    ? { path: url, query: "" }
    : { path: url.slice(0, question), query: url.slice(question + 1) };
}

/** `/package.Service/Method`, of the contract or not. */
function looksLikeCall(path: string): boolean {
  return /^\/[a-z][a-z0-9_.]*\.[A-Z][A-Za-z0-9]*\/[A-Z][A-Za-z0-9]*$/.test(path);
}

function ignore(): void {}
