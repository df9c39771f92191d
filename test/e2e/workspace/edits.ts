// Random edits of a tree, as a script for bash. The same seed gives the same edits.

/** A small generator of random numbers (mulberry32). */
export function random(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** Few enough that edits meet each other; in the form of bash's $'…'. Spaces, bytes that are no UTF-8, a newline, a
 * quote, a dash, a name that looks like an option or like our own. */
const directories = ["d", "d/e", "d/e/f", "with space", "\\xff\\xfe", "new\\nline", "-r", "caf\\xc3\\xa9"];
const names = ["a", "b", "c.txt", "--help", "it\\'s", "\\x01\\x7f", ".caisson-apply-x", "*", "d"];
const modes = ["644", "600", "755", "700", "664", "444", "400", "000", "640"];
const directoryModes = ["755", "700", "775", "750", "711"];

/** `whole`: directories are moved and get other modes, too. */
export function edits(seed: number, count: number, { whole = true } = {}): string {
  const below = random(seed);
  const pick = <T>(of: readonly T[]): T => of[below(of.length)]!;
  const quote = (path: string) => `$'./${path}'`;
  const file = () => quote(below(4) === 0 ? pick(names) : `${pick(directories)}/${pick(names)}`);
  const directory = () => quote(pick(directories));
  const any = () => (below(2) ? file() : directory());
  const content = () => "x".repeat(below(30)) + String(below(1000));
  const ofDirectories: (() => string)[] = [
    () => `f=${directory()}; [ -d "$f" ] && [ ! -L "$f" ] && chmod ${pick(directoryModes)} "$f"`,
    () => `mv -fT ${directory()} ${any()}`,
  ];
  const acts: (() => string)[] = [
    ...(whole ? ofDirectories : []),
    () => `printf '%s\\n' ${content()} > ${file()}`,
    () => `printf '%s\\n' ${content()} > ${file()}`,
    () => `printf '%s\\n' ${content()} >> ${file()}`,
    () => `: > ${file()}`,
    () => `head -c ${below(200_000)} /dev/zero | tr '\\0' '\\${below(8)}' > ${file()}`,
    () => `truncate -s ${below(5_000_000)} ${file()}`,
    () => `f=${file()}; [ -f "$f" ] && [ ! -L "$f" ] && chmod ${pick(modes)} "$f"`,
    () => `mkdir -p ${directory()}`,
    () => `mkdir -p ${directory()}`,
    () => `rm -f ${file()}`,
    () => `rm -rf ${any()}`,
    () => `mv -fT ${file()} ${file()}`,
    // Links that lead out of the project are withheld, which other tests look at.
    () =>
      `ln -sfT ${pick(["a", "./x", "*", ".", "\\$'\\\\xfe'", "nowhere/at all"].map((t) => `'${t}'`))} ${any()}`,
    () => `ln -fT ${file()} ${file()}`,
    () => `cp -aT ${directory()} ${any()}`,
    () => `touch ${file()}`,
    () => `f=${directory()}; rm -rf "$f"; mkdir -p "$f" && printf new > "$f"/b`,
    () => `f=${any()}; rm -rf "$f"; printf 'was something else' > "$f"`,
    () => `f=${any()}; rm -rf "$f"; mkdir -p "$f"; : > "$f"/a`,
    () => `exec 9<> ${file()}; exec 9>&-`,
  ];
  // What cannot be done in the state that is there is skipped, as a person's mistakes are.
  return Array.from({ length: count }, () => `{ ${pick(acts)()}; } 2>/dev/null || true`).join("\n");
}
