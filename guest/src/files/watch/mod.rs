//! Telling changes below a directory until the caller has enough.
//!
//! A name that appears, also by a rename over an existing one, is told as created; a change of content, mode or
//! times as modified. If the kernel drops events, or there are more directories than can be watched, one
//! overflow says that only a new listing tells the truth.

mod watcher;

use prost::Message;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

use super::{
    Talk,
    failure::{At, Stop, failure},
    path::SandboxPath,
    root::Root,
};
use crate::proto::link::{FileReply, WatchCall};
use watcher::Watcher;

pub fn watch(root: &Root, call: &WatchCall, talk: &mut Talk<'_>) -> Result<(), Stop> {
    let path = SandboxPath::parse(&call.path)?;
    let mut watcher = Watcher::new(root, path.clone(), call.recursive).at(&path)?;
    if watcher.is_full {
        return Err(failure("TOO_LARGE", format!("{path}: more directories than can be watched")).into());
    }
    talk.answer(FileReply::default())?;
    loop {
        let is_closed = {
            let closed = talk.channel.closed_fd();
            let mut fds = [PollFd::new(&watcher, PollFlags::IN), PollFd::from_borrowed_fd(closed, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Err::<(), _>(error).at(&path).unwrap_err().into()),
            }
            !fds[1].revents().is_empty()
        };
        if is_closed {
            return Err(Stop::Closed);
        }
        for change in watcher.changes().at(&path)? {
            talk.channel.send_message(change.encode_to_vec())?;
        }
        if watcher.is_gone {
            return Ok(talk.channel.end()?);
        }
    }
}
