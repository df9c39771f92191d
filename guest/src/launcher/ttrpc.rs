//! ttRPC, as far as one bidirectional stream needs it: a header of ten bytes and a protobuf message.

/// Length of the payload, stream, type and flags; integers are big-endian.
const HEADER_BYTES: usize = 10;
/// No message is longer; what is larger streams.
pub const MESSAGE_BYTES: usize = 4 * 1024 * 1024;

const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;
const DATA: u8 = 3;

const REMOTE_OPEN: u8 = 2;
const NO_DATA: u8 = 4;

/// Clients use odd stream numbers; one connection carries one call.
const STREAM: u32 = 1;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    #[prost(string, tag = "1")]
    pub service: String,
    #[prost(string, tag = "2")]
    pub method: String,
    #[prost(bytes = "vec", tag = "3")]
    pub payload: Vec<u8>,
    #[prost(int64, tag = "4")]
    pub timeout_nano: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    #[prost(message, optional, tag = "1")]
    pub status: Option<Status>,
    #[prost(bytes = "vec", tag = "2")]
    pub payload: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

/// What a server sends on our stream.
#[derive(Debug, PartialEq)]
pub enum Incoming<'a> {
    Data(&'a [u8]),
    Response(&'a [u8]),
    /// Nothing to see: the server will send no more data.
    Nothing,
}

/// The first frame: which call, with its input to follow.
pub fn put_open(out: &mut Vec<u8>, request: &Request) {
    put(out, REQUEST, REMOTE_OPEN, &prost::Message::encode_to_vec(request));
}

/// One message of the call's input.
pub fn put_data(out: &mut Vec<u8>, message: &impl prost::Message) {
    let start = out.len();
    put(out, DATA, 0, &[]);
    // Encoding into a growing vector cannot run out of room.
    let _ = message.encode(out);
    let length = (out.len() - start - HEADER_BYTES) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn put(out: &mut Vec<u8>, kind: u8, flags: u8, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    out.extend_from_slice(&STREAM.to_be_bytes());
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(payload);
}

/// Takes the first whole frame of `bytes`, with its length; `None` while it is not complete.
pub fn take(bytes: &[u8]) -> Result<Option<(Incoming<'_>, usize)>, &'static str> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let stream = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    if length > MESSAGE_BYTES {
        return Err("a message is too long");
    }
    if stream != STREAM {
        return Err("a message is for another stream");
    }
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    let frame = match (header[8], header[9] & NO_DATA != 0) {
        (DATA, true) => Incoming::Nothing,
        (DATA, false) => Incoming::Data(payload),
        (RESPONSE, _) => Incoming::Response(payload),
        _ => return Err("a message is of unknown type"),
    };
    Ok(Some((frame, HEADER_BYTES + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, kind, flags, payload);
        out[4..8].copy_from_slice(&stream.to_be_bytes());
        out
    }

    #[test]
    fn frames_are_taken_whole_or_not_at_all() {
        let bytes = frame(DATA, 0, 1, b"hello");
        for cut in 0..bytes.len() {
            assert_eq!(take(&bytes[..cut]), Ok(None));
        }
        assert_eq!(take(&bytes), Ok(Some((Incoming::Data(b"hello"), bytes.len()))));
        assert_eq!(take(&frame(DATA, 5, 1, b"")), Ok(Some((Incoming::Nothing, 10))));
        assert_eq!(take(&frame(RESPONSE, 0, 1, b"")), Ok(Some((Incoming::Response(b""), 10))));
    }

    #[test]
    fn frames_that_break_the_rules_are_errors() {
        assert!(take(&frame(REQUEST, 0, 1, b"")).is_err());
        assert!(take(&frame(DATA, 0, 3, b"")).is_err());
        let mut long = frame(DATA, 0, 1, b"");
        long[0..4].copy_from_slice(&(MESSAGE_BYTES as u32 + 1).to_be_bytes());
        assert!(take(&long).is_err());
    }

    #[test]
    fn a_message_is_framed_as_the_protocol_says() {
        let mut out = Vec::new();
        put_data(&mut out, &Status { code: 5, message: String::new() });
        assert_eq!(out, [0, 0, 0, 2, 0, 0, 0, 1, 3, 0, 8, 5]);
    }
}
