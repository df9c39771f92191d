//! Every call against real trees, once with openat2 and once without.

mod archives;
mod changing;
mod hostile;
mod races;
mod reading;
mod sparse;
mod watching;
mod writing;

use std::{
    collections::VecDeque,
    fs,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
    process::Command,
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::Sender,
    },
};

use prost::Message;

use super::{Channel, Closed, root::Root, serve_in};
use crate::proto::link::{Entries, Failure, FileCall, FileEntry, FileReply, file_call::Call};

/// A directory that plays the sandbox's root, inside another one that must never be touched.
pub struct Sandbox {
    pub outside: PathBuf,
    pub path: PathBuf,
    pub root: Root,
}

impl Sandbox {
    pub fn new(is_stepwise: bool) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let outside = std::env::temp_dir().join(format!("caisson-files-{}-{number}", std::process::id()));
        let path = outside.join("root");
        fs::create_dir_all(&path).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        let root = Root::open(path.to_str().unwrap()).unwrap();
        let root = if is_stepwise { root.stepwise() } else { root };
        Self { outside, path, root }
    }

    pub fn join(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.join(path)).unwrap()
    }

    /// Names at the top and below, sorted; directories end in a slash.
    pub fn names(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut pending = vec![self.path.clone()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let name = entry.path().strip_prefix(&self.path).unwrap().to_string_lossy().into_owned();
                let is_directory = entry.file_type().unwrap().is_dir();
                found.push(if is_directory { format!("{name}/") } else { name });
                if is_directory {
                    pending.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    pub fn call(&self, call: Call) -> Result<FileReply, Failure> {
        self.converse(call, &[]).answer()
    }

    pub fn converse(&self, call: Call, input: &[&[u8]]) -> Fake {
        let mut channel = Fake::new(input);
        serve_in(&self.root, FileCall { call: Some(call) }, &mut channel);
        channel
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        assert_eq!(fs::read_to_string(self.outside.join("secret")).unwrap(), "secret");
        // Without root, nobody removes what is in a closed directory.
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.outside).status();
        let _ = fs::remove_dir_all(&self.outside);
    }
}

/// Runs a test with both ways to resolve.
pub fn both(test: impl Fn(&Sandbox)) {
    for is_stepwise in [false, true] {
        test(&Sandbox::new(is_stepwise));
    }
}

/// A channel that remembers everything.
pub struct Fake {
    input: VecDeque<Vec<u8>>,
    /// Without END after the input: the stream is closed then.
    pub is_cut: bool,
    pub output: Vec<u8>,
    pub messages: Vec<Vec<u8>>,
    pub replies: Vec<Result<FileReply, Failure>>,
    pub failed: Option<Failure>,
    pub is_ended: bool,
    pub tap: Option<Sender<Vec<u8>>>,
    closed: OwnedFd,
    _open: Option<OwnedFd>,
}

impl Fake {
    pub fn new(input: &[&[u8]]) -> Self {
        let (closed, open) = rustix::pipe::pipe().unwrap();
        Self::with_closed(input, closed, Some(open))
    }

    pub fn with_closed(input: &[&[u8]], closed: OwnedFd, open: Option<OwnedFd>) -> Self {
        Self {
            input: input.iter().map(|piece| piece.to_vec()).collect(),
            is_cut: false,
            output: Vec::new(),
            messages: Vec::new(),
            replies: Vec::new(),
            failed: None,
            is_ended: false,
            tap: None,
            closed,
            _open: open,
        }
    }

    pub fn answer(self) -> Result<FileReply, Failure> {
        assert_eq!(self.replies.len(), 1, "exactly one answer");
        self.replies.into_iter().next().unwrap()
    }

    pub fn entries(&self) -> Vec<FileEntry> {
        assert!(self.is_ended);
        self.messages.iter().flat_map(|message| Entries::decode(message.as_slice()).unwrap().entries).collect()
    }
}

impl Channel for Fake {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.output.extend_from_slice(bytes);
        Ok(())
    }

    fn send_message(&mut self, bytes: Vec<u8>) -> Result<(), Closed> {
        assert!(bytes.len() <= 256 * 1024);
        if let Some(tap) = &self.tap {
            tap.send(bytes.clone()).map_err(|_| Closed)?;
        }
        self.messages.push(bytes);
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, Closed> {
        match self.input.pop_front() {
            None if self.is_cut => Err(Closed),
            piece => Ok(piece),
        }
    }

    fn end(&mut self) -> Result<(), Closed> {
        self.is_ended = true;
        Ok(())
    }

    fn fail(&mut self, failure: Failure) -> Result<(), Closed> {
        self.failed = Some(failure);
        Ok(())
    }

    fn reply(&mut self, reply: Result<FileReply, Failure>) -> Result<(), Closed> {
        if let Some(tap) = &self.tap {
            tap.send(b"answered".to_vec()).map_err(|_| Closed)?;
        }
        self.replies.push(reply);
        Ok(())
    }

    fn closed_fd(&self) -> BorrowedFd<'_> {
        self.closed.as_fd()
    }
}

/// The code of a refusal.
pub fn code<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
    result.unwrap_err().code
}
