import { CaissonError, type GitIdentity } from "@caisson/contract";

const maxBytes = 128;

/** What git inside reads before everything else: the sandbox's own /etc/gitconfig. Of the host's configuration it has nothing. */
export function gitConfig(identity: GitIdentity | undefined): string {
  return [
    // Owners and inodes are others than outside, where the index was made: comparing them would make the first
    // `git status` read every file.
    "[core]",
    "\tcheckStat = minimal",
    "\ttrustctime = false",
    // Spares `git status` the reading of directories, which weighs up what overlayfs adds to each file.
    "\tuntrackedCache = true",
    // Whoever owns the project on the host: inside there is only one user to trust or not.
    "[safe]",
    "\tdirectory = *",
    ...(identity
      ? ["[user]", `\tname = ${quoted(identity.name)}`, `\temail = ${quoted(identity.email)}`]
      : []),
    "",
  ].join("\n");
}

export function checkIdentity(identity: GitIdentity | undefined): void {
  if (!identity) return;
  for (const text of [identity.name, identity.email]) {
    if (text === "" || Buffer.byteLength(text) > maxBytes || /[\0-\x1f\x7f]/.test(text))
      throw new CaissonError(
        "INVALID_INPUT",
        `spec.git needs a name and an email of 1 to ${maxBytes} bytes, each of one line`,
      );
  }
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}
