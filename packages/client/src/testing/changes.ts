import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ApplyOutcome,
  CaissonError,
  type Sandbox,
  SandboxState,
  type ServedService,
  serve,
  type WorkspaceChangeSchema,
  WorkspaceService,
} from "@caisson/contract";

export type FakeChange = MessageInitShape<typeof WorkspaceChangeSchema> & { path: Uint8Array };

/** What a sandbox changed, and what became of it. */
export class FakeChanges {
  /** A test says what there is. */
  list: FakeChange[] = [];
  readonly applies: FakeChange[][] = [];

  /** Applies what is not withheld or is named, and what is not in conflict. */
  apply(paths: readonly string[], dryRun: boolean) {
    const files = this.list.map(({ path, withheld, conflict }) => {
      const name = Buffer.from(path).toString();
      if (withheld && !paths.includes(name))
        return { path, outcome: ApplyOutcome.WITHHELD, reason: withheld };
      if (conflict)
        return { path, outcome: ApplyOutcome.CONFLICT, reason: "it was changed on the host meanwhile" };
      return { path, outcome: ApplyOutcome.APPLIED, reason: "" };
    });
    const count = (outcome: ApplyOutcome) => files.filter((file) => file.outcome === outcome).length;
    const applied = count(ApplyOutcome.APPLIED);
    if (!dryRun && applied > 0) {
      this.applies.push(this.list.filter((_, i) => files[i]!.outcome === ApplyOutcome.APPLIED));
      this.list = this.list.filter((_, i) => files[i]!.outcome !== ApplyOutcome.APPLIED);
    }
    const applyId = dryRun || applied === 0 ? "" : `apply-${this.applies.length}`;
    return {
      applyId,
      files,
      applied,
      conflicts: count(ApplyOutcome.CONFLICT),
      withheld: count(ApplyOutcome.WITHHELD),
    };
  }

  undo() {
    const last = this.applies.pop();
    if (!last) throw new CaissonError("PATH_NOT_FOUND", "nothing was applied");
    this.list.push(...last);
    const files = last.map(({ path }) => ({ path, outcome: ApplyOutcome.APPLIED, reason: "" }));
    return { files, undone: files.length };
  }
}

/** What the service needs of the daemon around it. */
interface Around {
  sandbox(id: string): Sandbox;
  changes(id: string): FakeChanges;
}

export function workspaceService(daemon: Around): ServedService {
  const changes = (id: string) => daemon.changes(daemon.sandbox(id).id);
  return serve(WorkspaceService, {
    async *diffWorkspace({ sandboxId }) {
      const { list } = changes(sandboxId);
      if (list.length > 0) yield { changes: list };
    },
    applyWorkspace: async ({ sandboxId, paths, dryRun }) => changes(sandboxId).apply(paths, dryRun),
    async *exportWorkspace({ sandboxId }) {
      for (const { patch } of changes(sandboxId).list) yield { data: new TextEncoder().encode(patch) };
    },
    rebaseWorkspace: async ({ sandboxId }) => {
      const files = changes(sandboxId).list.flatMap(({ path, conflict }) =>
        conflict ? [{ path, outcome: ApplyOutcome.CONFLICT, reason: "both sides changed it" }] : [],
      );
      return { files, merged: 0, conflicts: files.length };
    },
    undoApply: async ({ sandboxId }) => changes(sandboxId).undo(),
    discardWorkspace: async ({ sandboxId }) => {
      if (daemon.sandbox(sandboxId).state !== SandboxState.ENDED)
        throw new CaissonError("WORKSPACE_IN_USE", "the sandbox still works on its changes");
      const there = changes(sandboxId);
      const bytes = BigInt(1024 * there.list.length);
      there.list = [];
      return { bytes };
    },
  });
}
