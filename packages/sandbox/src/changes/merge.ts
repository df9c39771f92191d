// Joins two versions of a file where git still has the version that both came from.
import type { LayerChange } from "@caisson/contract/keeper";
import { mergeDiff3 } from "node-diff3";
import { git, type Project } from "./git.ts";

export class Merger {
  readonly #project: Project;
  readonly #attachedAtS: number;
  #base: Promise<string | undefined> | undefined;

  constructor(project: Project & { attachedAtMs: number }) {
    this.#project = project;
    this.#attachedAtS = Math.floor(project.attachedAtMs / 1000);
  }

  /** The merged content, or undefined where there is no base or the changes overlap. */
  async merge(path: string, change: LayerChange): Promise<Buffer | undefined> {
    const [host, sandbox] = [change.old?.content, change.new?.content];
    if (host === undefined || sandbox === undefined) return undefined;
    this.#base ??= this.#commitAtAttachment();
    const commit = await this.#base;
    if (commit === undefined) return undefined;
    const base = await git(this.#project, ["cat-file", "blob", `${commit}:${path}`]);
    if (base === undefined) return undefined;
    const lines = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1").split("\n");
    const merged = mergeDiff3(lines(host), lines(base), lines(sandbox), { excludeFalseConflicts: true });
    return merged.conflict ? undefined : Buffer.from(merged.result.join("\n"), "latin1");
  }

  /** Has the host's index nothing that its HEAD has not? Then it can be made anew, and any `git status` does so. */
  async nothingStaged(): Promise<boolean> {
    const args = [
      "diff-index",
      "--cached",
      "--quiet",
      "--no-ext-diff",
      "--no-textconv",
      "--ignore-submodules",
      "HEAD",
    ];
    return (await git(this.#project, args)) !== undefined;
  }

  /** What was checked out when the sandbox attached the project: both versions come from it. A commit made since
   * would make the host's own changes look like the base, and the merge would take them back. */
  async #commitAtAttachment(): Promise<string | undefined> {
    const commit = (await git(this.#project, ["rev-parse", "--verify", `HEAD@{${this.#attachedAtS}}`]))
      ?.toString()
      .trim();
    if (commit === undefined || !/^[0-9a-f]{40,64}$/.test(commit)) return undefined;
    const made = await git(this.#project, ["log", "-1", "--no-show-signature", "--format=%ct", commit]);
    return Number(made?.toString()) <= this.#attachedAtS ? commit : undefined;
  }
}
