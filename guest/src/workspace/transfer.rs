//! Projects that travel over the link: a copy is packed to be sent in, and what came back replaces what differs.

use std::{
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd},
};

use super::{Answers, JobError, beneath, layer::Place};
use crate::{
    files::{Channel, Closed, remove_beneath, serve_beneath},
    proto::{
        keeper::{JobDone, PackJob, UnpackJob, workspace_message::Message as Answer},
        link::{Failure, FileCall, FileReply, PackCall, UnpackCall, file_call::Call},
    },
};

const PIECE_BYTES: usize = 256 << 10;

/// The layer as a tar stream.
pub fn pack(place: &Place, job: &PackJob, answers: &mut dyn Answers) -> Result<JobDone, JobError> {
    let call = Call::Pack(PackCall { path: "/".into(), leave_out: job.leave_out.clone(), ..PackCall::default() });
    perform(place, call, Talk { answers: Some(answers), ..Talk::default() })
}

/// Removes names, then unpacks what follows on `input`.
pub fn unpack(place: &Place, job: &UnpackJob, input: &mut dyn Read) -> Result<JobDone, JobError> {
    for path in &job.remove {
        let Some((parent, name)) = beneath::split(path) else {
            return Err(JobError::new("INVALID_INPUT", "a name that is not below the project"));
        };
        match beneath::open_directory(&place.upper, parent) {
            Ok(directory) => remove_beneath(&directory, name.as_encoded_bytes())?,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let call = UnpackCall {
        path: "/".into(),
        max_bytes: job.max_bytes,
        max_files: job.max_files,
        any_links: true,
        ..UnpackCall::default()
    };
    perform(place, Call::Unpack(call), Talk { input: Some(input), ..Talk::default() })
}

fn perform(place: &Place, call: Call, mut talk: Talk<'_>) -> Result<JobDone, JobError> {
    let upper = place.layer.join("upper");
    let upper = upper.to_str().ok_or_else(|| JobError::new("INVALID_PATH", "a path that is not UTF-8"))?;
    serve_beneath(upper, FileCall { call: Some(call) }, &mut talk);
    match (talk.failure, talk.reply) {
        (Some(Failure { message, errno, code }), _) => {
            // Only codes of the table are ever made there; the type wants one that lives for ever.
            let code = KNOWN.into_iter().find(|known| *known == code).unwrap_or("INTERNAL");
            Err(JobError { code, message, errno: errno as i32 })
        }
        (None, Some(reply)) => Ok(JobDone { count: reply.files, ..JobDone::default() }),
        (None, None) => Err(JobError::new("INTERNAL", "the stream ended before its end")),
    }
}

const KNOWN: [&str; 7] =
    ["HOSTILE_ARCHIVE", "TOO_LARGE", "STORAGE_FULL", "PATH_DENIED", "PATH_NOT_FOUND", "INVALID_PATH", "UNAVAILABLE"];

/// A call's two directions on this process's own.
#[derive(Default)]
struct Talk<'a> {
    answers: Option<&'a mut dyn Answers>,
    input: Option<&'a mut dyn Read>,
    reply: Option<FileReply>,
    failure: Option<Failure>,
}

impl Channel for Talk<'_> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let answers = self.answers.as_mut().ok_or(Closed)?;
        answers.tell(Answer::Data(bytes.to_vec())).map_err(|_| Closed)
    }

    fn send_message(&mut self, bytes: Vec<u8>) -> Result<(), Closed> {
        self.send(&bytes)
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, Closed> {
        let mut piece = vec![0; PIECE_BYTES];
        let count = self.input.as_mut().ok_or(Closed)?.read(&mut piece).map_err(|_| Closed)?;
        piece.truncate(count);
        Ok((count > 0).then_some(piece))
    }

    fn end(&mut self) -> Result<(), Closed> {
        Ok(())
    }

    fn fail(&mut self, failure: Failure) -> Result<(), Closed> {
        self.failure = Some(failure);
        Ok(())
    }

    fn reply(&mut self, reply: Result<FileReply, Failure>) -> Result<(), Closed> {
        match reply {
            Ok(reply) => self.reply = Some(reply),
            Err(failure) => self.failure = Some(failure),
        }
        Ok(())
    }

    /// Nothing here waits for anything but its own streams.
    fn closed_fd(&self) -> BorrowedFd<'_> {
        static STDIN: std::sync::OnceLock<io::Stdin> = std::sync::OnceLock::new();
        STDIN.get_or_init(io::stdin).as_fd()
    }
}
