import type { Duplex } from "node:stream";
import { Refusal } from "./refusal.ts";
import { ruleFor } from "./rules.ts";
import type { Answer, Ask } from "./seams.ts";

/** A question that nobody answers for so long is a refusal, whatever the one who asks has as its own bound. */
const mostMs = 600_000;

interface Question {
  answer: Promise<Answer>;
  /** Connections that wait for it; the last one to go takes the question back. */
  waiting: Set<Duplex>;
  controller: AbortController;
}

/** One question per target, however many connections wait for it. */
export class Asking {
  readonly #sandboxId: string;
  readonly #ask: Ask;
  readonly #remember: ((rule: string, answer: Answer) => void) | undefined;
  readonly #questions = new Map<string, Question>();

  constructor(sandboxId: string, ask: Ask, remember?: (rule: string, answer: Answer) => void) {
    this.#sandboxId = sandboxId;
    this.#ask = ask;
    this.#remember = remember;
  }

  /** Resolves with a yes; rejects with a refusal otherwise. */
  async ask(name: string, port: number, reason: string, stream: Duplex): Promise<void> {
    const key = ruleFor(name, port);
    const question = this.#questions.get(key) ?? this.#begin(key, name, port, reason);
    question.waiting.add(stream);
    const gone = () => {
      question.waiting.delete(stream);
      if (question.waiting.size === 0) question.controller.abort(new Error("the program has gone"));
    };
    stream.once("close", gone);
    try {
      const answer = await question.answer;
      if (!answer.allow) throw Refusal.because("answer", `${answer.by} refused ${key}`);
    } catch (thrown) {
      if (thrown instanceof Refusal) throw thrown;
      throw Refusal.because("no answer", `nobody allowed ${key} in time`, key);
    } finally {
      stream.off("close", gone);
      question.waiting.delete(stream);
    }
  }

  waits(stream: Duplex): boolean {
    return [...this.#questions.values()].some(({ waiting }) => waiting.has(stream));
  }

  #begin(key: string, name: string, port: number, reason: string): Question {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new Error("nobody answered")), mostMs).unref();
    const aborted = new Promise<never>((_, reject) => {
      controller.signal.addEventListener("abort", () => reject(controller.signal.reason), { once: true });
    });
    const asked = this.#ask({ sandboxId: this.#sandboxId, name, port, reason, signal: controller.signal });
    const answer = Promise.race([asked, aborted]).finally(() => {
      clearTimeout(timer);
      this.#questions.delete(key);
    });
    answer.then(
      (given) => given.allow && given.scope !== "once" && this.#remember?.(key, given),
      () => {},
    );
    const question: Question = { answer, waiting: new Set(), controller };
    this.#questions.set(key, question);
    return question;
  }
}
