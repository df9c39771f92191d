// Small projects of each language, for the host's own toolchains.
import type { Project } from "./project.ts";

export const plain: Readonly<Record<string, Project>> = {
  "node --test": {
    needs: "node --version",
    files: {
      "package.json": '{"type":"module","scripts":{"test":"node --test"}}',
      "sum.test.js":
        'import test from "node:test";\nimport assert from "node:assert";\ntest("sum", () => assert.equal(1 + 1, 2));\n',
    },
    argv: ["npm", "test", "--offline"],
    says: /pass 1\b/,
  },
  "cargo test": {
    needs: "cargo --version",
    files: {
      "Cargo.toml": '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n',
      "src/lib.rs": "#[test]\nfn sum() {\n    assert_eq!(1 + 1, 2);\n}\n",
    },
    argv: ["cargo", "test", "--offline"],
    says: /test sum \.\.\. ok/,
  },
  "python -m unittest": {
    needs: "python3 --version",
    files: {
      "test_sum.py":
        "import unittest\nclass Sum(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, 2)\n",
    },
    argv: ["sh", "-c", "python3 -m venv --without-pip .venv && .venv/bin/python -m unittest 2>&1"],
    says: /^OK$/m,
  },
  pytest: {
    needs: "python3 -m pytest --version",
    files: { "test_sum.py": "def test_sum():\n    assert 1 + 1 == 2\n" },
    argv: ["python3", "-m", "pytest", "-q"],
    says: /1 passed/,
  },
};
