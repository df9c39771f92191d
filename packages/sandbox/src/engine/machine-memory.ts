import { CaissonError, type Mechanism, MechanismState } from "@caisson/contract";
import type { Driver } from "../driver/driver.ts";
import type { LimitValues } from "../limits/index.ts";
import { preparedLimits } from "../profiles/index.ts";

const name = "limit.memory";

interface Fitted {
  limits: LimitValues;
  /** The size of the machine, where the driver's usual one is too small. */
  machineMemory: number | undefined;
}

/**
 * Where each sandbox is a machine, its memory has a size: it follows what was asked for, by the request or by a profile. The
 * default profile's bound asks for nothing; there the usual machine is the bound.
 */
export function fitMachine({ sizes, name: driver }: Driver, limits: LimitValues, asked: LimitValues): Fitted {
  if (!sizes || limits.memoryBytes === 0) return { limits, machineMemory: undefined };
  const { usual, most } = sizes;
  if (asked.memoryBytes > most) {
    const words = `${name} cannot be ${asked.memoryBytes} bytes in ${driver}: this host can hold a machine of ${most} bytes at most`;
    throw new CaissonError("NOT_ENFORCEABLE", words, { metadata: { mechanism: name } });
  }
  const isDefault = asked.memoryBytes === 0 && limits.memoryBytes === preparedLimits.memoryBytes;
  const memoryBytes = Math.min(limits.memoryBytes, isDefault ? usual : most);
  return {
    limits: { ...limits, memoryBytes },
    machineMemory: memoryBytes > usual ? sizes.sizeFor(memoryBytes) : undefined,
  };
}

/** Who holds a machine's commands to their bounds: what the host bounds is the machine itself. */
export function insideMachine({ sizes }: Driver, mechanisms: readonly Mechanism[]): Mechanism[] {
  if (!sizes) return [...mechanisms];
  return mechanisms.map((mechanism) => {
    const by = { [name]: "the machine's kernel", "limit.pids": "rlimit" }[mechanism.name];
    const holds = mechanism.state === MechanismState.ENFORCED;
    return by !== undefined && holds ? { ...mechanism, by, detail: "" } : mechanism;
  });
}
