import assert from "node:assert/strict";
import { CaissonError, type ErrorCode } from "@caisson/client";

/** A call must fail with this code of the table; returns the error. */
export async function refused(code: ErrorCode, call: Promise<unknown>): Promise<CaissonError> {
  let error: CaissonError | undefined;
  try {
    await call;
  } catch (thrown) {
    error = CaissonError.from(thrown);
  }
  assert.ok(error, `expected ${code}, but the call succeeded`);
  assert.equal(error.code, code, error.message);
  return error;
}
