import { CaissonError } from "@caisson/contract";

/** The guest broke a rule of the link: it is not a guest any more, and its sandbox is ended. */
export class LinkViolation extends CaissonError {
  /** Which rule, in a few words. */
  readonly rule: string;

  constructor(rule: string) {
    super("GUEST_LOST", `the guest broke a rule of the link: ${rule}`, { metadata: { rule } });
    this.rule = rule;
  }
}
