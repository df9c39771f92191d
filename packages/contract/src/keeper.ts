// What daemon and keeper say to each other; not part of the public contract.
export * from "./gen/caisson/keeper/v1/image_pb.ts";
export * from "./gen/caisson/keeper/v1/keeper_pb.ts";
export * from "./gen/caisson/keeper/v1/workspace_pb.ts";
