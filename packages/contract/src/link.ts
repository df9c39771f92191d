// What daemon and guest say to each other; not part of the public contract.
export * from "./gen/caisson/link/v1/link_pb.ts";
