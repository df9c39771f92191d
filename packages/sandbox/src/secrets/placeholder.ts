import { randomInt } from "node:crypto";

/** How tokens of well-known services begin, which their own tools check. Longer ones first. */
const beginnings = [
  "github_pat_",
  "sk-ant-",
  "sk-proj-",
  "dckr_pat_",
  "glpat-",
  "xoxb-",
  "xoxp-",
  "pypi-",
  "npm_",
  "ghp_",
  "gho_",
  "ghu_",
  "ghs_",
  "ghr_",
  "hf_",
  "sk-",
] as const;

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const randomLetters = 40;

/** What a sandbox holds instead of a secret: shaped like a token, random, and worth nothing. */
export function newPlaceholder(value: string): string {
  const beginning = beginnings.find((known) => value.startsWith(known)) ?? "csp_";
  return beginning + Array.from({ length: randomLetters }, () => letters[randomInt(letters.length)]).join("");
}
