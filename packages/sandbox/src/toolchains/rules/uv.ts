import { isShown } from "../paths.ts";
import type { ToolchainRule } from "../toolchain.ts";

/**
 * Pythons and tools by uv, which projects' `.venv` lead to. Of its directory neither `credentials` nor a tool's
 * receipt, which names the index that it came from.
 */
export const uv: ToolchainRule = {
  name: "uv",
  detect({ home, path }, look) {
    const entry = path.find((one) => look.exists(`${one}/uv`));
    const root = `${home}/.local/share/uv`;
    const pythons = `${root}/python`;
    const tools = `${root}/tools`;
    const binds = [pythons, tools].filter((part) => look.isDirectory(part));
    if (binds.length === 0 && (entry === undefined || isShown(entry))) return undefined;
    const inPythons = look.names(pythons).map((name) => `${pythons}/${name}/pip.conf`);
    const inTools = look
      .names(tools)
      .flatMap((name) => [`${tools}/${name}/uv-receipt.toml`, `${tools}/${name}/pip.conf`]);
    return {
      binds: entry === undefined ? binds : [entry, ...binds],
      covers: [...inPythons, ...inTools].filter((file) => look.exists(file)),
      env: look.isDirectory(pythons) ? { UV_PYTHON_INSTALL_DIR: pythons, UV_PYTHON_DOWNLOADS: "never" } : {},
      path: new Map(entry === undefined ? [] : [[entry, [entry]]]),
    };
  },
};
