import type { SystemInfo } from "@caisson/api";
import type { Engine } from "@caisson/sandbox";
import type { Store } from "@caisson/store";
import { RulesFile } from "./config/approvals.ts";
import type { Config } from "./config/config.ts";
import type { Trust } from "./config/trust.ts";
import { approvalsFile } from "./paths.ts";
import type { Renewal } from "./renewal/renewal.ts";

/** What the daemon tells about itself. */
export function systemInfo(parts: {
  version: string;
  build: string;
  engine: Engine;
  store: Store;
  config: Config;
  trust: Trust;
  renewal: Pick<Renewal, "trouble">;
  /** What went wrong at the start and did not keep it from starting. */
  troubles: readonly string[];
}): SystemInfo {
  const { version, build, engine, store, config, trust, renewal } = parts;
  return {
    version,
    build,
    health() {
      const trouble = store.trouble();
      const own = [trouble, renewal.trouble].filter((sentence) => sentence !== undefined);
      const troubles = [...own, ...parts.troubles, ...engine.troubles()];
      return { ready: trouble === undefined, troubles };
    },
    async settings(projectDir) {
      const { values, untrusted } = await config.forProject(projectDir, (file) => trust.trusts(file));
      const settings = [...values.values()].map(({ key, value, source }) => ({
        key,
        value: JSON.stringify(value),
        source,
      }));
      for (const [key, value] of Object.entries(config.policy ?? {})) {
        if (key === "path") continue;
        settings.push({
          key: `policy.${key}` as never,
          value: JSON.stringify(value),
          source: `machine policy ${config.policy!.path}`,
        });
      }
      const kept = approvalsFile();
      for (const { text } of await new RulesFile(kept).read()) {
        settings.push({
          key: "approvals.kept" as never,
          value: JSON.stringify(text),
          source: `kept answers ${kept}`,
        });
      }
      return { settings, untrustedProjectFile: untrusted };
    },
    async trust(projectDir, revoke, call) {
      const { path, sha256 } = await trust.set(projectDir, revoke, call.actor);
      return { file: path, sha256 };
    },
  };
}
