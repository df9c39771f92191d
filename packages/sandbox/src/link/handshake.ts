import { CaissonError, rules } from "@caisson/contract";
import { type GuestHello, HostHello_Role, type StreamPosition } from "@caisson/contract/link";
import type { Connection } from "./connection.ts";
import { printable } from "./failure.ts";
import { LinkViolation } from "./violation.ts";

/** Says hello as the host; `accept` gets the guest's answer before anything that follows it. */
export async function sayHello(
  connection: Connection,
  received: Pick<StreamPosition, "stream" | "position">[],
  accept: (hello: GuestHello) => void,
): Promise<void> {
  await connection.call(
    "hello",
    { case: "hello", value: { role: HostHello_Role.HOST, version: rules.link.version, received } },
    { accept },
  );
}

/** Is this a guest that we can speak with, and the one we spoke with before? */
export function checkHello(
  hello: GuestHello,
  build: string | undefined,
  before: GuestHello | undefined,
): void {
  if (hello.version !== rules.link.version) {
    throw mismatch(
      `the guest speaks version ${hello.version} of the link, the daemon version ${rules.link.version}`,
    );
  }
  if (build !== undefined && hello.build !== build) {
    throw mismatch(`the guest is of build ${printable(hello.build)}, the daemon expects ${build}`);
  }
  if (hello.window === 0) throw new LinkViolation("a window of no bytes");
  if (before && (before.build !== hello.build || (before.sealed && !hello.sealed))) {
    throw new LinkViolation("it is not the guest of before");
  }
}

function mismatch(message: string): CaissonError {
  return new CaissonError("VERSION_MISMATCH", message);
}
