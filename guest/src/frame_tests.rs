use super::*;

/// Small, fast and the same in every run (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

type Owned = (Kind, u32, Tag, Vec<u8>);

fn encode((kind, stream, tag, payload): &Owned) -> Vec<u8> {
    let header = Header { length: payload.len(), stream: *stream, kind: *kind, tag: *tag };
    [&header.encode()[..], payload].concat()
}

fn random_frame(random: &mut Random) -> Owned {
    let stream = random.next() as u32 | 1;
    let length = match random.below(20) {
        0 => random.below(MAX_PAYLOAD + 1),
        1 => 0,
        _ => random.below(2000),
    };
    match random.below(5) {
        0 => (Kind::Control, 0, Tag::None, random.bytes(length)),
        1 => (Kind::Data, stream, [Tag::None, Tag::Stdout, Tag::Stderr][random.below(3)], random.bytes(length)),
        2 => (Kind::Ack, stream, Tag::None, random.bytes(8)),
        3 => (Kind::End, stream, Tag::None, Vec::new()),
        _ => (Kind::Reset, stream, Tag::None, random.bytes(length)),
    }
}

/// Feeds `bytes` in pieces of random sizes and returns the frames and how it ended.
fn decode(random: &mut Random, mut bytes: &[u8], largest_piece: usize) -> (Vec<Owned>, Result<(), Broken>) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let piece = &bytes[..(1 + random.below(largest_piece)).min(bytes.len())];
        let taken = decoder.feed(piece);
        assert!(taken > 0, "the decoder always has room once its frames are taken");
        bytes = &bytes[taken..];
        assert!(decoder.buffer.capacity() <= 2 * (HEADER_BYTES + MAX_PAYLOAD));
        assert!(decoder.buffer.len() <= HEADER_BYTES + MAX_PAYLOAD);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => frames.push((frame.kind, frame.stream, frame.tag, frame.payload.to_vec())),
                Ok(None) => break,
                Err(broken) => return (frames, Err(broken)),
            }
        }
    }
    (frames, Ok(()))
}

#[test]
fn frames_survive_any_split() {
    let mut random = Random(1);
    for round in 0..60 {
        let frames: Vec<Owned> = (0..1 + random.below(30)).map(|_| random_frame(&mut random)).collect();
        let bytes: Vec<u8> = frames.iter().flat_map(encode).collect();
        let largest_piece = [1, 7, 100, 70_000][round % 4].max(bytes.len() / 20_000);
        let (decoded, end) = decode(&mut random, &bytes, largest_piece);
        assert_eq!(end, Ok(()));
        assert!(decoded == frames, "round {round}");
    }
}

#[test]
fn random_bytes_never_panic_nor_grow_the_buffer() {
    let mut random = Random(2);
    for _ in 0..3000 {
        let length = random.below(300);
        let bytes = random.bytes(length);
        let _ = decode(&mut random, &bytes, 40);
    }
}

#[test]
fn mutated_frames_are_refused_or_read_as_other_whole_frames() {
    let mut random = Random(3);
    for _ in 0..3000 {
        let frame = random_frame(&mut random);
        if frame.3.len() > 4000 {
            continue;
        }
        let mut bytes = encode(&frame);
        let at = random.below(HEADER_BYTES);
        bytes[at] ^= 1 << random.below(8);
        let (decoded, _) = decode(&mut random, &bytes, 64);
        assert!(decoded.first() != Some(&frame), "a changed header is another frame");
    }
}

#[test]
fn a_promise_of_a_large_frame_alone_takes_no_more_than_that_frame() {
    let mut decoder = Decoder::default();
    decoder.feed(&Header::new(Kind::Data, 1, MAX_PAYLOAD).encode());
    assert_eq!(decoder.next(), Ok(None));
    assert_eq!(decoder.space().len(), MAX_PAYLOAD);
}

#[test]
fn each_rule_of_the_header_is_kept() {
    let good = Header { length: 3, stream: 7, kind: Kind::Data, tag: Tag::Stderr };
    assert_eq!(Header::decode(&good.encode()), Ok(good));
    let bad = |change: fn(&mut [u8; HEADER_BYTES])| {
        let mut bytes = good.encode();
        change(&mut bytes);
        Header::decode(&bytes)
    };
    assert_eq!(bad(|b| b[8] = 0), Err(Broken("unknown frame type")));
    assert_eq!(bad(|b| b[8] = 6), Err(Broken("unknown frame type")));
    assert_eq!(bad(|b| b[9] = 3), Err(Broken("unknown tag")));
    assert_eq!(bad(|b| b[8] = 5), Err(Broken("unknown tag")));
    assert_eq!(bad(|b| b[10] = 1), Err(Broken("reserved bytes are not zero")));
    assert_eq!(bad(|b| b[11] = 1), Err(Broken("reserved bytes are not zero")));
    assert_eq!(bad(|b| b[4..8].fill(0)), Err(Broken("stream does not go with the type")));
    assert_eq!(bad(|b| (b[8], b[9]) = (1, 0)), Err(Broken("stream does not go with the type")));
    assert_eq!(bad(|b| b[0..4].copy_from_slice(&1_048_577u32.to_le_bytes())), Err(Broken("wrong payload length")));
    assert_eq!(bad(|b| (b[8], b[9]) = (3, 0)), Err(Broken("wrong payload length")));
    assert_eq!(bad(|b| (b[8], b[9]) = (4, 0)), Err(Broken("wrong payload length")));
}

#[test]
fn control_messages_round_trip_and_nonsense_is_refused() {
    use crate::proto::link;
    let message =
        link::HostControl { id: 9, message: Some(link::host_control::Message::Ping(link::Ping { token: 1 << 60 })) };
    let mut bytes = Vec::new();
    push_control(&mut bytes, &message);
    push_ack(&mut bytes, 4, 77);
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(&bytes), bytes.len());
    assert_eq!(decoder.next().unwrap().unwrap().message::<link::HostControl>().unwrap(), message);
    assert_eq!(decoder.next().unwrap().unwrap().position(), Ok(77));
    let mut random = Random(4);
    for _ in 0..2000 {
        let length = random.below(60);
        let payload = random.bytes(length);
        let frame = Frame { kind: Kind::Control, stream: 0, tag: Tag::None, payload: &payload };
        let _ = frame.message::<link::HostControl>();
    }
}
