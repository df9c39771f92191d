// Writes docs/configuration.md.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { reference } from "./reference.ts";

writeFileSync(join(import.meta.dirname, "../../../../docs/configuration.md"), reference());
