// How methods appear over HTTP; needed by the faces only.
export { http } from "./gen/google/api/annotations_pb.ts";
export type { HttpRule } from "./gen/google/api/http_pb.ts";
