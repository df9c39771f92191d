import type { Duplex } from "node:stream";
import type { Mechanism, Tier } from "@caisson/contract";
import type { Surroundings } from "@caisson/contract/link";
import type { Bounder, Cgroup, LimitValues } from "../limits/index.ts";
import type { MachineSizes } from "./microvm/sizes.ts";

/** Is a driver usable on this machine, and if not, why, and what would mend it? */
export interface Probe {
  usable: boolean;
  /** Why not. */
  reason?: string;
  /** The exact command that mends it. */
  fix?: string;
}

/** What a driver needs to know to start an unsealed sandbox. Nothing of a project is in it. */
export interface LaunchSpec {
  sandboxId: string;
  /** `host`: with the host's own programs. `bare`: without any; the root of an image is handed in later. */
  image: string;
  /** A directory of the daemon's alone, for this sandbox: socket, log, layers. */
  dir: string;
  /** Files named cgroup.procs to join, from the limits layer. */
  cgroups: string[];
  /** Bounds from the start, for drivers whose engine keeps them. */
  limits?: LimitValues;
  /** Files and directories of the host that show beside the image, read-only, at their own paths; only for drivers
   * that have `binds` or `copies` and not `mounts`. */
  shown?: readonly string[];
  /** The root of an image of the store, with `bare`; only for drivers that have `roots` and not `mounts`. */
  root?: string;
  /** How much memory its machine is to leave to it, for drivers that have `sizes`. Default: the usual. A saved machine has its
   * own, and may have no more. */
  memoryBytes?: number;
  /** A saved machine to go on from, for drivers that have `memory`. It may be sealed already. */
  machine?: string;
  /** Of a machine that was parked before it was saved: the host name that it is to have of its own. */
  wakeAs?: string;
}

/**
 * What a driver can do beyond running commands.
 * - `mounts`: takes mounts as descriptors after the launch (`attach`). Without it a project is sent over the link and
 *   unpacked inside, and what was changed is fetched the same way (`engine/transfer`).
 * - `overlay`: a project's own directory can be the lower layer of an overlay.
 * - `binds`: shows parts of the host that are known at the launch.
 * - `copies`: the same, of which it has to make a copy first.
 * - `images`: images other than `host`, by name.
 * - `roots`: launches without any programs (`bare`), and takes the root of an image as a mount (`attach`), or shows it from
 *   the launch on where it has no `mounts`.
 * - `pause`, `snapshot`, `fork`, `memory`: holds still, keeps its files, makes twins, keeps its memory too.
 * - `emulated`: its wall is a program that plays a machine; never the strongest.
 * - `unexercised`: written after a published description; those who wrote it have not seen it run on real hardware.
 */
export type Capability =
  | "mounts"
  | "overlay"
  | "binds"
  | "copies"
  | "images"
  | "roots"
  | "pause"
  | "snapshot"
  | "fork"
  | "memory"
  | "emulated"
  | "unexercised";

/** What survives the daemon: enough to find the sandbox again. Kept as JSON in the store. */
export interface LaunchRecord {
  driver: string;
  pid: number;
  startTime: number;
  /** The uid that the sandbox has on the host. */
  uid: number;
  gid: number;
  socket: string;
  /** The engine's id of it, where it is a container of an engine. */
  container?: string;
  /** The engine's socket, and whether the engine bounds it. */
  engine?: string;
  bounded?: boolean;
}

/** A started sandbox, sealed or not. */
export interface Launched {
  readonly record: LaunchRecord;
  /** Opens the link. May be called again after a cut. */
  connect(): Promise<Duplex>;
  /** Ends everything inside at once; resolves when it is gone. */
  kill(): Promise<void>;
  /** Resolves when the sandbox's outer process is gone, with a sentence. */
  readonly ended: Promise<string>;
  /** Hands in mounts as descriptors; resolves with what was handed in. Only called where the driver has `mounts`. */
  attach(sources: MountSource[]): Promise<Attachment[]>;
  /** What the driver itself enforces: namespaces, root, network, by what means. */
  mechanisms(): Mechanism[];
  /** The control group that its engine keeps it in, where the daemon's own are not used. */
  readonly cgroup?: Cgroup | undefined;
  /** Bounds the memory of everything inside, in bytes, where only the inside can: a kernel of its own. 0: no bound. */
  limitMemory?(bytes: number): Promise<void>;
  /** What its process on the host may take, where the inside is bounded by `limitMemory`. */
  readonly outerMemoryBytes?: number;
  /** Does once, beside the sandbox, what it will do first, so that it is quicker then. For one that waits, unsealed. */
  rehearse?(): Promise<void>;
  /** Makes a sandbox whose wall is closed ready to be saved, so that copies of it become sandboxes of their own; its link is
   * closed, and is not opened again. */
  park?(): Promise<void>;
  /** Stops everything inside until `resume`, with `pause`. */
  pause?(): Promise<void>;
  resume?(): Promise<void>;
  /** Saves the whole machine, which is paused, into a new file and others beside it, with `memory`. `fleeting`: its memory need
   * not be on the disk, since it is gone on with at once. */
  saveMachine?(file: string, fleeting: boolean): Promise<void>;
}

export interface MountSource {
  /** Its real path: one with links in it is refused. */
  path: string;
  readOnly: boolean;
  /** Its owner appears as the sandbox's user. */
  mapOwner: boolean;
  refuseNested: boolean;
}

export interface Attachment {
  device: bigint;
  inode: bigint;
  isFile: boolean;
}

/** One way to start sandboxes. Workspace, files, limits and egress are written once, elsewhere. */
export interface Driver {
  readonly name: string;
  readonly tier: Tier;
  readonly capabilities: readonly Capability[];
  /** Processes cannot be bounded inside: what the host counts of it are its own threads. */
  readonly cannotCountProcesses?: boolean;
  /** What it makes just now that its sandboxes will begin with, for people. */
  readonly preparing?: string | undefined;
  /** What bounds its sandboxes from outside, where that is not the daemon; known once it was tried. */
  readonly bounder?: Bounder | undefined;
  /** How much memory its sandboxes can have, where each is a machine whose size is decided before. */
  readonly sizes?: Pick<MachineSizes, "usual" | "most" | "sizeFor">;
  /** What the guest stands in, where that is not a Linux kernel with namespaces of the sandbox's own. */
  readonly surroundings?: Surroundings;
  probe(): Promise<Probe>;
  /** Boots a machine to see whether it runs on the processor itself; `capabilities` tells afterwards. May take seconds. */
  tryHardware?(): Promise<void>;
  /** What a machine that it saves depends on of this host, with `memory`: its processor, the program that plays it. */
  machineHost?(): Promise<string>;
  /** Throws, with a sentence, if a machine that was saved elsewhere cannot go on here; resolves with the memory that it leaves to its
   * sandbox. May take a boot. */
  mustFit?(machine: string): Promise<number>;
  launch(spec: LaunchSpec): Promise<Launched>;
  /** Finds a sandbox that an earlier daemon started; undefined if it is gone. */
  adopt(sandboxId: string, record: LaunchRecord): Promise<Launched | undefined>;
  /** Removes what earlier daemons of the same data directory left with somebody else, but for the living. */
  sweep?(living: ReadonlySet<string>): Promise<void>;
}
