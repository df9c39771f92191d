import assert from "node:assert/strict";
import { test } from "node:test";
import type { DescService } from "@bufbuild/protobuf";
import * as contract from "@caisson/contract";
import { isSettled } from "./ownership.ts";

test("of every method it is settled what a caller gets that sees only its own", () => {
  const services = Object.values(contract).filter(
    (each) => typeof each === "object" && each !== null && "kind" in each && each.kind === "service",
  ) as DescService[];
  const methods = services.flatMap((service) => service.methods);
  assert.ok(methods.length > 50);
  for (const method of methods) assert.ok(isSettled(method), method.name);
});
