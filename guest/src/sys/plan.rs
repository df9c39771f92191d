//! A command on its way to a monitor: one block of bytes, from which pointers for exec are made
//! without allocating anything.

use std::ffi::{CStr, CString, c_char};

use rustix::process::Rlimit;

/// Length of all, programs, arguments, variables, terminal; then the two limits.
pub const HEADER_BYTES: usize = 5 * 4 + 2 * 8;

/// A command and what it is started with.
pub struct Plan {
    bytes: Vec<u8>,
    strings: usize,
}

pub struct Parts {
    /// What to try to execute, in this order.
    pub programs: Vec<CString>,
    pub arguments: Vec<CString>,
    pub environment: Vec<CString>,
    pub directory: CString,
    /// On open files; PID 1's own is higher.
    pub open_files: Rlimit,
    /// Standard input is the terminal that the command gets as its controlling one.
    pub terminal: bool,
}

impl Plan {
    pub fn new(parts: &Parts) -> Self {
        let lists = [&parts.programs, &parts.arguments, &parts.environment];
        let text = lists.into_iter().flatten().chain([&parts.directory]).map(|string| string.as_bytes_with_nul().len());
        let length = HEADER_BYTES + text.sum::<usize>();
        let mut bytes = Vec::with_capacity(length);
        let counts = lists.map(|list| list.len() as u32);
        for number in [length as u32, counts[0], counts[1], counts[2], parts.terminal.into()] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for limit in [parts.open_files.current, parts.open_files.maximum] {
            bytes.extend_from_slice(&limit.unwrap_or(u64::MAX).to_le_bytes());
        }
        for string in [&parts.directory].into_iter().chain(lists.into_iter().flatten()) {
            bytes.extend_from_slice(string.as_bytes_with_nul());
        }
        Self { bytes, strings: lists.into_iter().map(|list| list.len() + 1).sum() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many pointers `Job::read` needs.
    pub fn pointers(&self) -> usize {
        self.strings
    }
}

/// A plan as the child sees it. Its pointers lead into the plan's bytes and into the array that it
/// was read into.
pub struct Job<'a> {
    pub directory: &'a CStr,
    pub programs: &'a [*const c_char],
    /// Both end with a null pointer.
    pub arguments: &'a [*const c_char],
    pub environment: &'a [*const c_char],
    pub open_files: Rlimit,
    pub terminal: bool,
}

impl<'a> Job<'a> {
    /// How long the plan is that begins with these bytes, once that can be said.
    pub fn length(bytes: &[u8]) -> Option<usize> {
        Some(u32::from_le_bytes(*bytes.first_chunk()?) as usize)
    }

    /// Allocates nothing. `None` when the bytes are no plan or do not fit.
    pub fn read(bytes: &'a [u8], pointers: &'a mut [*const c_char]) -> Option<Self> {
        let int = |index: usize| Some(u32::from_le_bytes(*bytes.get(index * 4..)?.first_chunk()?) as usize);
        let limit = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        if int(0)? != bytes.len() {
            return None;
        }
        let counts = [int(1)?, int(2)?, int(3)?];
        let mut text = bytes.get(HEADER_BYTES..)?;
        let mut next = || {
            let string = CStr::from_bytes_until_nul(text).ok()?;
            text = &text[string.count_bytes() + 1..];
            Some(string)
        };
        let directory = next()?;
        let mut at = 0;
        for count in counts {
            for _ in 0..count {
                *pointers.get_mut(at)? = next()?.as_ptr();
                at += 1;
            }
            *pointers.get_mut(at)? = std::ptr::null();
            at += 1;
        }
        let (programs, rest) = pointers.split_at(counts[0]);
        let (arguments, environment) = rest.get(1..)?.split_at(counts[1] + 1);
        let number = |value: u64| (value != u64::MAX).then_some(value);
        Some(Self {
            directory,
            programs,
            arguments,
            environment,
            open_files: Rlimit { current: number(limit(20)?), maximum: number(limit(28)?) },
            terminal: int(4)? != 0,
        })
    }
}
