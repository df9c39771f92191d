import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Approval, ApprovalSchema } from "@caisson/contract";
import type { ApprovalRecord } from "./approval.ts";

export function toApproval({ record, waiting }: { record: ApprovalRecord; waiting: number }): Approval {
  const { requestedAt, expiresAt, decidedAt, ...same } = record;
  return create(ApprovalSchema, {
    ...same,
    waiting,
    requestedAt: timestampFromMs(requestedAt),
    ...(expiresAt === 0 ? {} : { expiresAt: timestampFromMs(expiresAt) }),
    ...(decidedAt === 0 ? {} : { decidedAt: timestampFromMs(decidedAt) }),
  });
}
