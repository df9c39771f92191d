import { inside } from "../../engine/inside.ts";
import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";

/** The file names the default; the proxies make the directory of hashes, and fail, where there is none. */
const parts = ["toolchains", "settings.toml", "update-hashes"];

/**
 * Rust by rustup: `~/.cargo/bin` with its proxies and what `cargo install` put there, and the toolchains. Not
 * `~/.cargo` itself, which holds `credentials.toml`, `config.toml` and the registry's cache: CARGO_HOME is the
 * sandbox's own.
 */
export const rustup: ToolchainRule = {
  name: "rustup",
  detect({ home, path }, look) {
    const entry = path.find((one) => look.exists(`${one}/cargo`));
    if (entry === undefined) return undefined;
    const roots = look.exists(`${entry}/rustup`) ? [`${home}/.rustup`, "/usr/local/rustup"] : [];
    const root = roots.find((one) => look.isDirectory(`${one}/toolchains`));
    // The distribution's own Rust is there anyway.
    if (root === undefined && isShown(entry)) return undefined;
    const cargoHome = `${inside.home}/.cargo`;
    return {
      binds: [entry, ...parts.map((name) => `${root}/${name}`).filter((part) => look.exists(part))],
      covers: [],
      env: { CARGO_HOME: cargoHome, ...(root === undefined ? {} : { RUSTUP_HOME: root }) },
      path: new Map([[entry, [`${cargoHome}/bin`, entry]]]),
    };
  },
};
