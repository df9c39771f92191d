// The machine-readable rules: what a server is held to.
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Rules {
  contract: { name: string; revision: number };
  sizes: Record<string, number>;
  errors: Record<string, { status: string; http: number; next: string }>;
  end_reasons: string[];
}

export const rules: Rules = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../spec/rules.json"), "utf8"),
);
