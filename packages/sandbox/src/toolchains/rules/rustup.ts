import { inside } from "../../engine/inside.ts";
import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";

/**
 * Rust by rustup: `~/.cargo/bin` with its proxies and what `cargo install` put there, and `~/.rustup`, which
 * is toolchains and the name of the default one. Not `~/.cargo` itself, which holds `credentials.toml`,
 * `config.toml` and the registry's cache: CARGO_HOME is the sandbox's own.
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
      binds: root === undefined ? [entry] : [entry, root],
      covers: [],
      env: { CARGO_HOME: cargoHome, ...(root === undefined ? {} : { RUSTUP_HOME: root }) },
      path: new Map([[entry, [`${cargoHome}/bin`, entry]]]),
    };
  },
};
