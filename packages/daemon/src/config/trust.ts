import { join, resolve } from "node:path";
import { CaissonError } from "@caisson/contract";
import type { Store } from "@caisson/store";
import { projectFileName } from "../paths.ts";
import { type ConfigFile, readConfigFile } from "./files.ts";

/** Which project files the user has trusted, by path and content. */
export class Trust {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  trusts(file: ConfigFile): boolean {
    return this.#store.get<{ sha256: string }>("trust", file.path)?.sha256 === file.sha256;
  }

  /** Trusts the project's file as it is now, or takes the trust back. */
  async set(projectDir: string, revoke: boolean, actor: string): Promise<ConfigFile> {
    const path = join(resolve(projectDir), projectFileName);
    const file = await readConfigFile(path);
    if (file === undefined)
      throw new CaissonError("INVALID_INPUT", `there is no ${projectFileName} in that directory`);
    const data = { file: path, sha256: file.sha256 };
    if (revoke) {
      await this.#store.commit(
        [{ type: "project.untrusted", actor, data }],
        [{ remove: "trust", key: path }],
      );
    } else {
      await this.#store.commit(
        [{ type: "project.trusted", actor, data }],
        [{ put: "trust", key: path, value: { sha256: file.sha256 } }],
      );
    }
    return file;
  }
}
