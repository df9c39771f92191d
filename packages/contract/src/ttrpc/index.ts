// ttRPC's framing and envelopes, for both ends of a socket. Node only.
export {
  type DecoderOptions,
  encodeFrame,
  encodeHeader,
  FrameDecoder,
  type FrameSink,
  flag,
  headerBytes,
  messageType,
  writeHeader,
} from "./frame.ts";
export { dataFrame, requestFrame, responseFrame } from "./message.ts";
export {
  decodeRequest,
  encodeRequest,
  type RequestEnvelope,
  type RequestInit,
  requestPrefix,
} from "./request.ts";
export { decodeResponse, encodeErrorResponse, encodeResponse, type ResponseEnvelope } from "./response.ts";
