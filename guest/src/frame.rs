//! Frames of the link (spec/link.md): a header of twelve bytes, then the payload.

use prost::Message;

use crate::rules::LINK_FRAME_BYTES;

pub const HEADER_BYTES: usize = 12;
/// The largest payload a frame may have.
pub const MAX_PAYLOAD: usize = LINK_FRAME_BYTES;

/// Room to read into when nothing larger is known to be on its way.
const READ_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Control = 1,
    Data = 2,
    Ack = 3,
    End = 4,
    Reset = 5,
}

/// Whose output a DATA frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    None = 0,
    Stdout = 1,
    Stderr = 2,
}

/// The other side broke a rule of the link; nothing more of it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub length: usize,
    pub stream: u32,
    pub kind: Kind,
    pub tag: Tag,
}

impl Header {
    pub fn new(kind: Kind, stream: u32, length: usize) -> Self {
        Self { length, stream, kind, tag: Tag::None }
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        debug_assert!(self.length <= MAX_PAYLOAD);
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8] = self.kind as u8;
        bytes[9] = self.tag as u8;
        bytes
    }

    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Broken> {
        let [l0, l1, l2, l3, s0, s1, s2, s3, kind, tag, r0, r1] = *bytes;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let stream = u32::from_le_bytes([s0, s1, s2, s3]);
        let kind = match kind {
            1 => Kind::Control,
            2 => Kind::Data,
            3 => Kind::Ack,
            4 => Kind::End,
            5 => Kind::Reset,
            _ => return Err(Broken("unknown frame type")),
        };
        let tag = match (kind, tag) {
            (_, 0) => Tag::None,
            (Kind::Data, 1) => Tag::Stdout,
            (Kind::Data, 2) => Tag::Stderr,
            _ => return Err(Broken("unknown tag")),
        };
        if (r0, r1) != (0, 0) {
            return Err(Broken("reserved bytes are not zero"));
        }
        if (kind == Kind::Control) != (stream == 0) {
            return Err(Broken("stream does not go with the type"));
        }
        let fits = match kind {
            Kind::Control | Kind::Data | Kind::Reset => length <= MAX_PAYLOAD,
            Kind::Ack => length == 8,
            Kind::End => length == 0,
        };
        if !fits {
            return Err(Broken("wrong payload length"));
        }
        Ok(Self { length, stream, kind, tag })
    }
}

/// One frame, its payload still in the decoder's buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: Kind,
    pub stream: u32,
    pub tag: Tag,
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// The position of an ACK.
    pub fn position(&self) -> Result<u64, Broken> {
        let bytes: [u8; 8] = self.payload.try_into().map_err(|_| Broken("not a position"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The message of a CONTROL frame.
    pub fn message<M: Message + Default>(&self) -> Result<M, Broken> {
        M::decode(self.payload).map_err(|_| Broken("not a control message"))
    }
}

/// Cuts what arrives into frames. Its buffer never exceeds one frame of the largest size.
#[derive(Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Decoder {
    /// Where the next bytes are to be read into; never empty as long as `next` is called until it gives `None`.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > 4 * READ_BYTES {
                self.buffer = Vec::new();
            }
        }
        // What is missing of the frame that has begun, or room for several small ones.
        let wanted = self.missing().max(READ_BYTES);
        if self.buffer.len() - self.end < wanted && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let size = (self.end + wanted).min(HEADER_BYTES + MAX_PAYLOAD);
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// `count` bytes were read into `space`.
    pub fn filled(&mut self, count: usize) {
        debug_assert!(count <= self.buffer.len() - self.end);
        self.end += count;
    }

    /// Takes bytes that were read elsewhere; only for what is known to be short.
    #[cfg(test)]
    pub fn feed(&mut self, mut bytes: &[u8]) -> usize {
        let space = self.space();
        let count = bytes.len().min(space.len());
        bytes = &bytes[..count];
        space[..count].copy_from_slice(bytes);
        self.filled(count);
        count
    }

    /// The next whole frame, or `None` when more bytes are needed.
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Broken> {
        let Some(header) = self.header()? else { return Ok(None) };
        let total = HEADER_BYTES + header.length;
        if self.end - self.start < total {
            return Ok(None);
        }
        let payload = self.start + HEADER_BYTES..self.start + total;
        self.start += total;
        Ok(Some(Frame { kind: header.kind, stream: header.stream, tag: header.tag, payload: &self.buffer[payload] }))
    }

    fn header(&self) -> Result<Option<Header>, Broken> {
        match self.buffer[self.start..self.end].first_chunk() {
            Some(bytes) => Header::decode(bytes).map(Some),
            None => Ok(None),
        }
    }

    fn missing(&self) -> usize {
        match self.header() {
            Ok(Some(header)) => (HEADER_BYTES + header.length).saturating_sub(self.end - self.start),
            _ => 0,
        }
    }
}

/// Appends a CONTROL frame.
pub fn push_control(out: &mut Vec<u8>, message: &impl Message) {
    let length = message.encoded_len();
    out.reserve(HEADER_BYTES + length);
    out.extend_from_slice(&Header::new(Kind::Control, 0, length).encode());
    message.encode_raw(out);
}

/// Appends an ACK frame.
pub fn push_ack(out: &mut Vec<u8>, stream: u32, position: u64) {
    out.extend_from_slice(&Header::new(Kind::Ack, stream, 8).encode());
    out.extend_from_slice(&position.to_le_bytes());
}

/// Appends a frame with a payload that is at hand.
#[cfg(test)]
pub fn push(out: &mut Vec<u8>, kind: Kind, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&Header::new(kind, stream, payload.len()).encode());
    out.extend_from_slice(payload);
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
