import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallContext, SettingSchema } from "@caisson/contract";

/** What the daemon tells about itself. */
export interface SystemInfo {
  readonly version: string;
  /** Identifies this build of daemon and guest. */
  readonly build: string;
  health(): { ready: boolean; troubles: string[] };
  /** The settings in force, for a project directory or for none (empty). */
  settings(projectDir: string): Promise<{
    settings: MessageInitShape<typeof SettingSchema>[];
    untrustedProjectFile: string;
  }>;
  trust(projectDir: string, revoke: boolean, call: CallContext): Promise<{ file: string; sha256: string }>;
}

/** Writes a line for the people who run the daemon; what callers never see goes here. */
export type Log = (
  level: "debug" | "info" | "warn" | "error",
  message: string,
  fields?: Record<string, unknown>,
) => void;
