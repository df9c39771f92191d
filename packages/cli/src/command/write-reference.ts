// Writes docs/cli.md from the command table.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadGroups } from "../commands/table.ts";
import { reference } from "./reference.ts";

writeFileSync(join(import.meta.dirname, "../../../../docs/cli.md"), reference(await loadGroups()));
