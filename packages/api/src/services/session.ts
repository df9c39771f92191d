import { type ServedService, SessionService, serve } from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import { checkSessionName, checkSpec } from "./check.ts";

export function sessionService(engine: Engine): ServedService {
  return serve(SessionService, {
    async openSession(request, call) {
      return await engine.openSession(checkSessionName(request.name), checkSpec(request.spec), call);
    },
    async listSessions() {
      return { sessions: await engine.sessions() };
    },
    async closeSession(request, call) {
      return { session: await engine.closeSession(checkSessionName(request.name), call) };
    },
  });
}
