//! Messages behind their length: four little-endian bytes, then the message.

use prost::Message;

use crate::proto::keeper::{KeeperReply, KeeperRequest};

/// Requests carry a command line and a few paths.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Bytes that have come and are not yet whole messages.
#[derive(Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message's bytes without their length, if all of them are here.
    pub fn next(&mut self) -> Result<Option<&[u8]>, &'static str> {
        let rest = &self.bytes[self.taken..];
        let Some((head, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > MAX_MESSAGE_BYTES {
            return Err("a message is too long");
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        self.taken += 4 + length;
        Ok(Some(message))
    }

    pub fn next_request(&mut self) -> Result<Option<KeeperRequest>, &'static str> {
        match self.next()? {
            Some(bytes) => KeeperRequest::decode(bytes).map(Some).map_err(|_| "a request cannot be read"),
            None => Ok(None),
        }
    }
}

pub fn framed(reply: &KeeperReply) -> Vec<u8> {
    let length = reply.encoded_len();
    let mut bytes = Vec::with_capacity(4 + length);
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    reply.encode(&mut bytes).expect("a vector grows");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::keeper::{Adopted, keeper_reply::Reply};

    #[test]
    fn a_message_that_comes_in_pieces_is_read_once_it_is_whole() {
        let reply = KeeperReply { id: 7, failure: None, reply: Some(Reply::Adopted(Adopted { alive: true })) };
        let bytes = [framed(&reply), framed(&reply)].concat();
        let mut inbox = Inbox::default();
        let mut seen = 0;
        for byte in bytes {
            inbox.push(&[byte]);
            while let Some(message) = inbox.next().unwrap() {
                assert_eq!(KeeperReply::decode(message).unwrap(), reply);
                seen += 1;
            }
        }
        assert_eq!(seen, 2);
    }

    #[test]
    fn a_length_beyond_the_bound_is_refused_before_anything_is_kept() {
        let mut inbox = Inbox::default();
        inbox.push(&u32::MAX.to_le_bytes());
        assert!(inbox.next().is_err());
    }

    #[test]
    fn no_bytes_make_it_panic_or_keep_more_than_it_may() {
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..2000 {
            let mut inbox = Inbox::default();
            for _ in 0..random() % 8 {
                let length = (random() % 64) as u32;
                let announced = if random() % 2 == 0 { length } else { random() as u32 };
                inbox.push(&announced.to_le_bytes());
                inbox.push(&(0..length).map(|_| random() as u8).collect::<Vec<_>>());
            }
            while let Ok(Some(_)) = inbox.next_request() {}
            assert!(inbox.bytes.len() <= 8 * 68);
        }
    }
}
