import type { ToolchainRule } from "../toolchain.ts";
import { asdf } from "./asdf.ts";
import { bun } from "./bun.ts";
import { conda } from "./conda.ts";
import { fnm } from "./fnm.ts";
import { go } from "./go.ts";
import { localBin } from "./local-bin.ts";
import { mise } from "./mise.ts";
import { node } from "./node.ts";
import { npmGlobal } from "./npm-global.ts";
import { nvm } from "./nvm.ts";
import { pyenv } from "./pyenv.ts";
import { rustup } from "./rustup.ts";
import { sdkman } from "./sdkman.ts";
import { uv } from "./uv.ts";
import { volta } from "./volta.ts";

/** All of them; where two set the same variable, the later one wins. */
export const rules: readonly ToolchainRule[] = [
  node,
  nvm,
  fnm,
  volta,
  npmGlobal,
  bun,
  rustup,
  pyenv,
  uv,
  conda,
  go,
  sdkman,
  asdf,
  mise,
  localBin,
];
