//! Reading an archive as it comes, without believing anything it says.

use super::{
    BLOCK_BYTES, Kind, Marks, Member,
    header::{self, Block},
    pax::Extra,
    sparse::{self, Map, Next, Walk},
};

/// What a name, or all that an extended header says about one member, may take.
const MAX_EXTRA_BYTES: u64 = 64 * 1024;

/// What the archive goes on with.
#[derive(Debug, PartialEq)]
pub enum Event<'a> {
    Member(Member),
    Content(&'a [u8]),
    /// The file goes on behind a hole of so many bytes.
    Hole(u64),
    /// The content of the last member is complete.
    Done,
}

/// Takes bytes in pieces of any size and tells what they are.
#[derive(Default)]
pub struct Reader {
    block: Vec<u8>,
    state: State,
    /// For the next member only.
    extra: Extra,
    /// The time of all members from here on; nothing else is taken from a global header.
    modified: Option<i64>,
    tells_special: bool,
}

#[derive(Default)]
enum State {
    #[default]
    Header,
    /// Content that is passed on, then padding.
    Content {
        left: u64,
        padding: usize,
        /// Of a file with holes: where its content belongs.
        walk: Option<Walk>,
    },
    /// Blocks of a map of holes, which end the header.
    MapBlocks {
        member: Member,
        map: Map,
        stored: u64,
    },
    /// A map of holes before the content.
    MapLines {
        member: Member,
        bytes: Vec<u8>,
        /// Of the member, the map included.
        stored: u64,
    },
    /// Content that speaks of another member.
    Speaking {
        kind: u8,
        left: u64,
        padding: usize,
        bytes: Vec<u8>,
    },
    Padding {
        left: usize,
    },
    /// After the first block of zeros: nothing but zeros.
    Over,
}

impl Reader {
    /// One that tells of devices and FIFOs, so that they can be left out.
    pub fn telling_special() -> Self {
        Self { tells_special: true, ..Self::default() }
    }

    /// Takes one piece; every event is given to `tell`, whose error ends the reading.
    pub fn take<E: From<&'static str>>(
        &mut self,
        mut bytes: &[u8],
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Header | State::MapBlocks { .. } | State::MapLines { .. } => {
                    let taken = bytes.len().min(BLOCK_BYTES - self.block.len());
                    self.block.extend_from_slice(&bytes[..taken]);
                    bytes = &bytes[taken..];
                    if let Ok(block) = Block::try_from(self.block.as_slice()) {
                        self.block.clear();
                        match std::mem::take(&mut self.state) {
                            State::MapBlocks { member, map, stored } => {
                                self.map_block(&block, sparse::IN_BLOCK, member, map, stored, tell)?
                            }
                            State::MapLines { member, bytes, stored } => {
                                self.map_lines(&block, member, bytes, stored, tell)?
                            }
                            _ => self.header(&block, tell)?,
                        }
                    }
                }
                State::Content { left, padding, walk } => {
                    let mut taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    if let Some(walk) = walk {
                        let room = pass_holes(walk, tell)?;
                        taken = taken.min(usize::try_from(room).unwrap_or(usize::MAX));
                        walk.advance(taken as u64);
                    }
                    tell(Event::Content(&bytes[..taken]))?;
                    *left -= taken as u64;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        if let Some(walk) = walk {
                            pass_holes(walk, tell)?;
                        }
                        self.state = after(*padding);
                        tell(Event::Done)?;
                    }
                }
                State::Speaking { kind, left, padding, bytes: said } => {
                    let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    said.extend_from_slice(&bytes[..taken]);
                    *left -= taken as u64;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        let (kind, said, next) = (*kind, std::mem::take(said), after(*padding));
                        self.heed(kind, &said)?;
                        self.state = next;
                    }
                }
                State::Padding { left } => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        self.state = State::Header;
                    }
                }
                State::Over => {
                    if bytes.iter().any(|byte| *byte != 0) {
                        return Err("something follows the archive's end".into());
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// There is no more: was that the end?
    pub fn finish(&self) -> Result<(), &'static str> {
        if matches!(self.state, State::Over) { Ok(()) } else { Err("the archive is cut off") }
    }

    fn header<E: From<&'static str>>(
        &mut self,
        block: &Block,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if block.iter().all(|byte| *byte == 0) {
            self.state = State::Over;
            return Ok(());
        }
        let size = check(block)?;
        let size = match block[header::TYPE] {
            kind @ (b'x' | b'g' | b'L' | b'K') => {
                if size == 0 || size > MAX_EXTRA_BYTES {
                    return Err("an extended header is empty or too long".into());
                }
                self.state = State::Speaking { kind, left: size, padding: padding(size), bytes: Vec::new() };
                return Ok(());
            }
            _ => self.extra.size.unwrap_or(size),
        };
        let mut sparse = self.extra.sparse.take();
        let mut member = self.member(block, size)?;
        if let Some(sparse) = &mut sparse {
            if !matches!(block[header::TYPE], b'0' | 0) {
                return Err("a member that is no plain file is sparse".into());
            }
            member.path = sparse.take_name().unwrap_or(member.path);
            let (map, is_to_come) = sparse.map()?;
            member.size = map.size;
            if !is_to_come {
                return self.begin_sparse(member, map, size, tell);
            }
            self.state = State::MapLines { member, bytes: Vec::new(), stored: size };
            return Ok(());
        }
        if block[header::TYPE] == b'S' {
            if &block[header::MAGIC] != header::GNU {
                return Err("a member is sparse in a form that is not known".into());
            }
            let real = header::number(&block[sparse::REAL_SIZE]).ok_or("a sparse member has no size")?;
            member.size = real;
            return self.map_block(block, sparse::IN_HEADER, member, Map::new(real), size, tell);
        }
        self.begin(member, size, None, tell)
    }

    /// The member is known; `stored` bytes of content follow.
    fn begin<E: From<&'static str>>(
        &mut self,
        member: Member,
        stored: u64,
        mut walk: Option<Walk>,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        tell(Event::Member(member))?;
        if stored > 0 {
            self.state = State::Content { left: stored, padding: padding(stored), walk };
            return Ok(());
        }
        self.state = State::Header;
        if let Some(walk) = &mut walk {
            pass_holes(walk, tell)?;
        }
        tell(Event::Done)
    }

    fn begin_sparse<E: From<&'static str>>(
        &mut self,
        member: Member,
        map: Map,
        stored: u64,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        map.check(stored)?;
        self.begin(member, stored, Some(Walk::new(map)), tell)
    }

    /// A block with entries of a map: the header's own, or one that follows.
    fn map_block<E: From<&'static str>>(
        &mut self,
        block: &Block,
        entries: sparse::Entries,
        member: Member,
        mut map: Map,
        stored: u64,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if map.push_entries(block, entries)? {
            self.state = State::MapBlocks { member, map, stored };
            return Ok(());
        }
        self.begin_sparse(member, map, stored, tell)
    }

    fn map_lines<E: From<&'static str>>(
        &mut self,
        block: &Block,
        member: Member,
        mut bytes: Vec<u8>,
        stored: u64,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        bytes.extend_from_slice(block);
        let left = stored.checked_sub(bytes.len() as u64).ok_or("a sparse member's map is malformed")?;
        let mut map = Map::new(member.size);
        if map.push_lines(&bytes)?.is_some() {
            return self.begin_sparse(member, map, left, tell);
        }
        self.state = State::MapLines { member, bytes, stored };
        Ok(())
    }

    fn member(&mut self, block: &Block, size: u64) -> Result<Member, &'static str> {
        let extra = std::mem::take(&mut self.extra);
        let kind = match block[header::TYPE] {
            b'0' | b'S' | 0 => Kind::File,
            b'5' => Kind::Directory,
            b'2' => Kind::Symlink,
            b'1' => Kind::HardLink,
            b'3' | b'4' | b'6' if self.tells_special => Kind::Special,
            b'3' | b'4' => return Err("a member is a device"),
            b'6' => return Err("a member is a FIFO"),
            _ => return Err("a member is of a kind that is not taken"),
        };
        if kind != Kind::File && size != 0 {
            return Err("a member that is no file has content");
        }
        let mode = header::number(&block[header::MODE]).ok_or("a member's mode is malformed")?;
        let modified = header::number(&block[header::MTIME]).and_then(|time| i64::try_from(time).ok());
        Ok(Member {
            kind,
            path: extra.path.unwrap_or_else(|| name(block)),
            target: extra.target.unwrap_or_else(|| header::text(&block[header::LINK]).to_vec()),
            mode: u32::try_from(mode).map_err(|_| "a member's mode is malformed")?,
            size,
            modified: extra.modified.or(self.modified).or(modified).unwrap_or(0),
            marks: Marks {
                nanoseconds: extra.nanoseconds,
                is_opaque: extra.is_opaque,
                is_whiteout: block[header::TYPE] == b'3' && header::is_device_zero(block),
                is_fifo: block[header::TYPE] == b'6',
                has_attributes: extra.has_attributes,
            },
        })
    }

    /// Takes what was said about the next member, or all that follow.
    fn heed(&mut self, kind: u8, said: &[u8]) -> Result<(), &'static str> {
        match kind {
            b'x' => self.extra.parse(said),
            b'g' => {
                let mut global = Extra { modified: self.modified, ..Default::default() };
                global.parse(said)?;
                self.modified = global.modified;
                if global.path.is_some() || global.target.is_some() || global.size.is_some() || global.sparse.is_some()
                {
                    return Err("a global header names files");
                }
                Ok(())
            }
            b'L' => {
                self.extra.path = Some(header::text(said).to_vec());
                Ok(())
            }
            _ => {
                self.extra.target = Some(header::text(said).to_vec());
                Ok(())
            }
        }
    }
}

/// Is this a header at all? Then its size.
fn check(block: &Block) -> Result<u64, &'static str> {
    let magic = &block[header::MAGIC];
    if magic != header::USTAR && magic != header::GNU {
        return Err("this is not a tar archive, or a compressed one");
    }
    if header::number(&block[header::CHECKSUM]) != Some(header::checksum(block)) {
        return Err("a header's checksum is wrong");
    }
    header::number(&block[header::SIZE]).ok_or("a member's size is malformed")
}

fn name(block: &Block) -> Vec<u8> {
    let name = header::text(&block[header::NAME]);
    let prefix = header::text(&block[header::PREFIX]);
    // GNU's own format keeps other things where the prefix would be.
    if &block[header::MAGIC] == header::GNU || prefix.is_empty() {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

/// Tells of holes up to the next data, and how much of that there is without one.
fn pass_holes<E>(walk: &mut Walk, tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>) -> Result<u64, E> {
    loop {
        match walk.next() {
            Some(Next::Hole(bytes)) => tell(Event::Hole(bytes))?,
            Some(Next::Data(bytes)) => return Ok(bytes),
            None => return Ok(0),
        }
    }
}

fn padding(size: u64) -> usize {
    (BLOCK_BYTES - (size % BLOCK_BYTES as u64) as usize) % BLOCK_BYTES
}

fn after(padding: usize) -> State {
    if padding == 0 { State::Header } else { State::Padding { left: padding } }
}
