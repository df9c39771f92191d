//! Changes as an archive, in the form of a layer of an image.

use std::{collections::HashSet, fs::File, io::Read};

use super::{
    Answers, JobError, beneath,
    layer::{self, Place},
    scan::{self, Since},
};
use crate::{
    files::tar::{
        Kind, Marks, Member,
        writer::{put_end, put_member, put_padding},
    },
    proto::keeper::{
        ExportJob, JobDone, LayerChange, LayerFileType as Type, LayerState, workspace_message::Message as Answer,
    },
};

const PIECE: usize = 256 << 10;

pub fn run(place: &Place, job: &ExportJob, answers: &mut dyn Answers) -> Result<JobDone, JobError> {
    let wanted: HashSet<&[u8]> = job.paths.iter().map(Vec::as_slice).collect();
    let mut count = 0;
    let mut out = Vec::new();
    for change in scan::changes(place, Since::new(job.attached_at_ns, None))? {
        if wanted.contains(change.path.as_slice()) {
            member(place, &change, &mut out, answers)?;
            count += 1;
        }
    }
    put_end(&mut out);
    answers.tell(Answer::Data(out))?;
    Ok(JobDone { count, ..JobDone::default() })
}

fn member(place: &Place, change: &LayerChange, out: &mut Vec<u8>, answers: &mut dyn Answers) -> Result<(), JobError> {
    match change.new.as_ref().map(|new| (Type::try_from(new.r#type), new)) {
        None => put_member(out, &whiteout(&change.path)),
        Some((Ok(Type::Regular), new)) => content(place, change, new, out, answers)?,
        Some((Ok(Type::Symlink), new)) => put_member(out, &described(change, new, Kind::Symlink, 0)),
        Some((Ok(Type::Directory), new)) => put_member(out, &described(change, new, Kind::Directory, 0)),
        // Devices, FIFOs and sockets are no part of a project.
        Some(_) => {}
    }
    tell_when_full(out, answers)
}

fn tell_when_full(out: &mut Vec<u8>, answers: &mut dyn Answers) -> Result<(), JobError> {
    if out.len() >= PIECE {
        answers.tell(Answer::Data(std::mem::take(out)))?;
    }
    Ok(())
}

fn described(change: &LayerChange, state: &LayerState, kind: Kind, size: u64) -> Member {
    let mut path = change.path.clone();
    if kind == Kind::Directory {
        path.push(b'/');
    }
    let modified = state.mtime_ns.div_euclid(1_000_000_000);
    Member { kind, path, target: state.target.clone(), mode: state.mode, size, modified, marks: Marks::default() }
}

fn whiteout(path: &[u8]) -> Member {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => path.split_at(slash + 1),
        None => (&[][..], path),
    };
    Member {
        kind: Kind::File,
        path: [parent, b".wh.", name].concat(),
        target: Vec::new(),
        mode: 0,
        size: 0,
        modified: 0,
        marks: Marks::default(),
    }
}

/// The file as it is when it is opened; one that grows is cut there, one that shrinks is an error.
fn content(
    place: &Place,
    change: &LayerChange,
    state: &LayerState,
    out: &mut Vec<u8>,
    answers: &mut dyn Answers,
) -> Result<(), JobError> {
    let named = beneath::split(&change.path).filter(|_| change.path.len() <= beneath::MAX_PATH);
    let (parent, name) = named.ok_or_else(|| JobError::new("INVALID_PATH", "a path is too long for an archive"))?;
    let file = beneath::open_file(beneath::open_directory(&place.upper, parent)?, name)?;
    let stat = rustix::fs::fstat(&file)?;
    let mut left = stat.st_size as u64;
    let state = LayerState { mode: layer::permissions(&stat), ..state.clone() };
    put_member(out, &described(change, &state, Kind::File, left));
    let mut file = File::from(file).take(left);
    let padded = left;
    while left > 0 {
        let start = out.len();
        out.resize(start + left.min(PIECE as u64) as usize, 0);
        let read = file.read(&mut out[start..])?;
        out.truncate(start + read);
        if read == 0 {
            return Err(JobError::new("WORKSPACE_IN_USE", "a file became shorter while it was read"));
        }
        left -= read as u64;
        tell_when_full(out, answers)?;
    }
    put_padding(out, padded);
    Ok(())
}
