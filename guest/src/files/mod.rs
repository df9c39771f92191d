//! The file calls of the link, on a tree in which hostile code may change anything at any moment.
//!
//! Every path is resolved beneath the sandbox's root (`root`), links are followed only inside it, and
//! only regular files are ever read or written. Nothing here blocks on a FIFO or device, and whatever
//! grows with the tree has a bound.

mod directory;
mod entry;
mod failure;
mod list;
mod mkdir;
mod pack;
mod path;
mod read;
mod remove;
mod rename;
mod root;
mod stepwise;
pub mod tar;
mod temporary;
#[cfg(test)]
mod tests;
mod unpack;
mod watch;
mod write;

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::proto::link::{self, file_call::Call};
use failure::{Stop, failure};
use root::Root;

pub use unpack::clean_member;
pub use write::leave_hole;

/// The stream went away: the caller gave it up or the link was cut.
#[derive(Debug)]
pub struct Closed;

/// One call's two directions, as a worker thread sees them. Every method may block.
pub trait Channel {
    /// Sends content; waits while the window is full.
    fn send(&mut self, bytes: &[u8]) -> Result<(), Closed>;
    /// Sends one message as one DATA frame; waits while the window is full.
    fn send_message(&mut self, bytes: Vec<u8>) -> Result<(), Closed>;
    /// Takes the next piece of content; `None` after END.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, Closed>;
    /// No more will be sent.
    fn end(&mut self) -> Result<(), Closed>;
    /// Gives the stream up with a reason, in the middle of content whose call was already answered (RESET).
    fn fail(&mut self, failure: link::Failure) -> Result<(), Closed>;
    /// Answers the call.
    fn reply(&mut self, reply: Result<link::FileReply, link::Failure>) -> Result<(), Closed>;
    /// A descriptor that becomes readable when the stream is closed, for calls that wait on something else.
    fn closed_fd(&self) -> std::os::fd::BorrowedFd<'_>;
}

/// Serves one call to its end, on a thread of its own.
pub fn serve(call: link::FileCall, channel: &mut dyn Channel) {
    match Root::open("/") {
        Ok(root) => serve_in(&root, call, channel),
        Err(error) => drop(channel.reply(Err(failure::from_errno("/", error)))),
    }
}

/// The same on another tree than the sandbox's own, beneath which every path of the call lies.
pub fn serve_beneath(directory: &str, call: link::FileCall, channel: &mut dyn Channel) {
    match Root::open(directory) {
        Ok(root) => serve_in(&root, call, channel),
        Err(error) => drop(channel.reply(Err(failure::from_errno("/", error)))),
    }
}

/// Removes a name of a directory with everything below it; what is not there is removed already.
pub fn remove_beneath(directory: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match remove::remove_tree(&Root::open("/")?, directory, name) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

fn serve_in(root: &Root, call: link::FileCall, channel: &mut dyn Channel) {
    let mut talk = Talk { channel, is_answered: false };
    let Err(Stop::Failed(failure)) = perform(root, call, &mut talk) else { return };
    // A caller that is gone has no use for the reason.
    let _ = if talk.is_answered { talk.channel.fail(failure) } else { talk.channel.reply(Err(failure)) };
}

fn perform(root: &Root, call: link::FileCall, talk: &mut Talk<'_>) -> Result<(), Stop> {
    let Some(call) = call.call else { return Err(failure("INVALID_INPUT", "an empty file call").into()) };
    match call {
        Call::Stat(call) => talk.answer_entry(read::stat(root, &call)?),
        Call::Read(call) => read::read(root, &call, talk),
        Call::Write(call) => write::write(root, &call, talk),
        Call::List(call) => list::list(root, &call, talk),
        Call::Mkdir(call) => talk.answer_entry(mkdir::mkdir(root, &call)?),
        Call::Move(call) => talk.answer_entry(rename::rename(root, &call)?),
        Call::Remove(call) => {
            remove::remove(root, &call)?;
            talk.answer(link::FileReply::default())
        }
        Call::Watch(call) => watch::watch(root, &call, talk),
        Call::Unpack(call) => unpack::unpack(root, &call, talk),
        Call::Pack(call) => pack::pack(root, &call, talk),
    }
}

/// The channel, and whether the call was answered yet.
struct Talk<'a> {
    channel: &'a mut dyn Channel,
    is_answered: bool,
}

impl Talk<'_> {
    fn answer(&mut self, reply: link::FileReply) -> Result<(), Stop> {
        self.is_answered = true;
        Ok(self.channel.reply(Ok(reply))?)
    }

    fn answer_entry(&mut self, entry: link::FileEntry) -> Result<(), Stop> {
        self.answer(link::FileReply { entry: Some(entry), ..Default::default() })
    }
}
