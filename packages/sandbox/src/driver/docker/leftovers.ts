import type { Engine } from "./api.ts";

/** Containers of ours that nobody needs and that the engine, when it was asked, did not remove. */
export class Leftovers {
  readonly #marks: { home: string; daemon: string };
  readonly #containers = new Set<string>();
  /** Sandboxes of an earlier daemon that go on; the others of its containers are to go. */
  #living: ReadonlySet<string> | undefined;

  constructor(marks: { home: string; daemon: string }) {
    this.#marks = marks;
  }

  add(container: string): void {
    this.#containers.add(container);
  }

  /** Whatever an earlier daemon of the same data directory left. */
  addUnknown(living: ReadonlySet<string>): void {
    this.#living = living;
  }

  /** Removes what there is as far as the engine does it; the rest stays for the next time. */
  async remove(engine: Engine): Promise<void> {
    if (this.#living) {
      for (const container of await this.#unknown(engine, this.#living)) this.#containers.add(container);
      this.#living = undefined;
    }
    const { remove } = await import("./launch.ts");
    for (const container of this.#containers)
      if (await remove(engine, container)) this.#containers.delete(container);
  }

  async #unknown(engine: Engine, living: ReadonlySet<string>): Promise<string[]> {
    const { labels } = await import("./container.ts");
    const filters = JSON.stringify({ label: [`${labels.home}=${this.#marks.home}`] });
    const { body } = await engine.call({
      method: "GET",
      path: "/containers/json",
      query: { all: "1", filters },
    });
    const found = (Array.isArray(body) ? body : []) as { Id: string; Labels?: Record<string, string> }[];
    return found
      .filter(({ Labels = {} }) => Labels[labels.daemon] !== this.#marks.daemon)
      .filter(({ Labels = {} }) => !living.has(Labels[labels.sandbox] ?? ""))
      .map(({ Id }) => Id);
  }
}
