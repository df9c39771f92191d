// Root's own Rust in a home of an ordinary user's, as rustup would have put it there.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { type Account, temporaryDirectory } from "./daemon.ts";

/** Hard links where they can be, since toolchains are large. Directories become the account's; files stay root's. */
const script = `
set -e
home=$1
toolchain=$(rustup default | cut -d' ' -f1)
from=$(rustc --print sysroot)
to=$home/.rustup/toolchains/$toolchain
mkdir -p "$home/.cargo" "$home/.rustup/update-hashes" "$to"
cp -a "$(dirname "$(command -v cargo)")" "$home/.cargo/bin"
cp -al "$from/bin" "$from/lib" "$to" 2>/dev/null || cp -a "$from/bin" "$from/lib" "$to"
printf 'version = "12"\\ndefault_toolchain = "%s"\\n' "$toolchain" > "$home/.rustup/settings.toml"
find "$home" -type d -exec chown "$2" {} +
`;

export interface Lent {
  home: string;
  /** Of a shell of the account's. */
  env: { PATH: string; HOME: string };
}

/** Empty where root has no Rust to lend. */
export function lendRust(account: Account): Lent {
  const home = temporaryDirectory(account, "/var/tmp/caisson-lent-");
  spawnSync("sh", ["-c", script, "sh", home, `${account.uid}:${account.gid}`]);
  return { home, env: { PATH: `${join(home, ".cargo/bin")}:${process.env.PATH}`, HOME: home } };
}
