// What launcher and daemon say to each other; not part of the public contract.
export * from "./gen/caisson/terminal/v1/terminal_pb.ts";
