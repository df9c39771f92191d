//! The file calls of the link, each confined beneath the sandbox's root.

use crate::proto::link;

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
    let _ = (call, channel);
}
