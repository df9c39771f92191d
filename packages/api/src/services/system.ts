import {
  advertisedLimits,
  CaissonError,
  rules,
  type ServedService,
  SystemService,
  serve,
} from "@caisson/contract";
import type { Engine } from "@caisson/sandbox";
import type { SystemInfo } from "../deps.ts";
import { invalid } from "./check.ts";
import type { Repeats } from "./repeats.ts";

export function systemService(engine: Engine, system: SystemInfo, repeats: Repeats): ServedService {
  return serve(SystemService, {
    async getHealth() {
      return system.health();
    },
    async getCapabilities() {
      return {
        contract: rules.contract.name,
        revision: rules.contract.revision,
        version: system.version,
        build: system.build,
        limits: advertisedLimits(),
        drivers: await engine.drivers(),
      };
    },
    async diagnose() {
      return { findings: await engine.diagnose() };
    },
    async listProfiles() {
      return { profiles: engine.profiles() };
    },
    async listPresets({ names, projectDir }, call) {
      return { presets: await engine.presets(names, checkDirectory(projectDir, true), call) };
    },
    async getConfig(request) {
      return await system.settings(checkDirectory(request.projectDir, true));
    },
    async trustProject(request, call) {
      return await system.trust(checkDirectory(request.projectDir, false), request.revoke, call);
    },
    async getUsage() {
      return { items: await engine.usage() };
    },
    async prune(request, call) {
      return await repeats.once(SystemService.method.prune, request, call, () =>
        engine.prune(call, request.agents),
      );
    },
  });
}

/** A directory of the host: absolute, and nothing that a log or terminal would act upon. */
function checkDirectory(dir: string, mayBeEmpty: boolean): string {
  if (dir === "" && mayBeEmpty) return dir;
  if (!dir.startsWith("/")) throw invalid("`project_dir` must be an absolute path");
  if (/[\u0000-\u001f\u007f]/.test(dir)) {
    throw new CaissonError("INVALID_PATH", "`project_dir` contains a control character");
  }
  return dir;
}
