export function isSandboxId(text: string): boolean {
  return /^sb_[0-9a-z]{16}$/.test(text);
}
