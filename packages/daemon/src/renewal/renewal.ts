// Replaces a daemon whose sources have changed by one of the new ones, between calls. Sandboxes live on.
import type { DescMethod } from "@bufbuild/protobuf";
import { rules } from "@caisson/contract";
import type { Sources } from "./sources.ts";

/** Without a further change or call, before the daemon renews itself: a checkout touches many files. */
const quietMs = 2000;

/** What cannot be repeated by its caller when it is cut; everything else is retried or resumed. */
const precious: ReadonlySet<string> = new Set(rules.retry.only_with_key);

const nothing = () => {};

export class Renewal {
  readonly #sources: Sources;
  readonly #renew: () => void;
  readonly #enabled: boolean;
  readonly #rehearse: () => Promise<string | undefined>;
  /** The last rehearsal: of which state of the sources, and what was wrong. */
  #rehearsed: { touches: number; trouble: Promise<string | undefined> } | undefined;
  #unfit: string | undefined;
  #working = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `renew` stops this daemon and starts another; `enabled` is the setting; `rehearse` says what is wrong with the new sources, if
   * something is: then this daemon stays, because another one could not start.
   */
  constructor(options: {
    sources: Sources;
    enabled: boolean;
    renew: () => void;
    rehearse: () => Promise<string | undefined>;
  }) {
    this.#sources = options.sources;
    this.#enabled = options.enabled;
    this.#renew = options.renew;
    this.#rehearse = options.rehearse;
    options.sources.onTouched = () => this.#soon();
  }

  /** Remembers what this daemon was made from; nobody waits for it. */
  async watch(): Promise<void> {
    await this.#sources.begin();
    if (this.#sources.knownToHaveChanged) this.#soon();
  }

  /** Calls under way that must not be cut. */
  get working(): number {
    return this.#working;
  }

  /** A sentence when this daemon is older than its sources and nobody has replaced it yet. */
  get trouble(): string | undefined {
    if (!this.#sources.knownToHaveChanged) return undefined;
    if (this.#unfit)
      return `the daemon is older than its sources, but no daemon can be made of those: ${this.#unfit}`;
    return "the daemon is older than its sources: `caisson daemon restart` replaces it";
  }

  /** Should the caller start another daemon before anything else? */
  async due(): Promise<boolean> {
    if (!this.#enabled || !(await this.#sources.changed())) return false;
    // The caller does it: what was begun by ourselves is put off, now and until the caller had time to.
    this.#soon();
    if (!(await this.#isFit())) return false;
    this.#soon();
    return true;
  }

  /** Something begins that must not be cut; call the result when it is done. */
  begin(): () => void {
    this.#working++;
    let done = false;
    return () => {
      if (done) return;
      done = true;
      this.#working--;
      if (this.#sources.knownToHaveChanged) this.#soon();
    };
  }

  /** The same for a call, if it is one of those. */
  beginCall(method: DescMethod): () => void {
    return precious.has(method.name) ? this.begin() : nothing;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#sources.close();
  }

  #soon(): void {
    if (!this.#enabled) return;
    clearTimeout(this.#timer);
    const timer = setTimeout(() => void this.#tryNow(timer), quietMs).unref();
    this.#timer = timer;
  }

  async #tryNow(timer: NodeJS.Timeout): Promise<void> {
    if (!(await this.#sources.changed()) || this.#working > 0 || !(await this.#isFit())) return;
    // Meanwhile something may have happened that puts it off.
    if (this.#working === 0 && this.#timer === timer) this.#renew();
  }

  /** Once for each state of the sources. */
  async #isFit(): Promise<boolean> {
    const { touches } = this.#sources;
    if (this.#rehearsed?.touches !== touches) this.#rehearsed = { touches, trouble: this.#rehearse() };
    this.#unfit = await this.#rehearsed.trouble;
    return this.#unfit === undefined;
  }
}
