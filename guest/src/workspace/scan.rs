//! Finds every difference between the layer and the project. Only directories that the sandbox wrote to
//! are visited, so the cost grows with what changed and not with the project.

use std::{
    collections::HashSet,
    ffi::OsStr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{self, Stat},
    io::Errno,
};

use super::{
    Answers, JobError, beneath, compare,
    directories::Directories,
    git_index,
    journal::{Identity, Known},
    layer::{self, Place},
    renames,
};
use crate::proto::keeper::{
    JobDone, LayerChange, LayerChangeKind as Kind, LayerFileType as Type, Rebased, ScanJob,
    workspace_message::Message as Answer,
};

pub fn run(place: &Place, options: &ScanJob, answers: &mut dyn Answers) -> Result<JobDone, JobError> {
    let mut changes = changes(place, Since::new(options.attached_at_ns, options.rebased.as_ref()))?;
    if options.renames {
        renames::pair(place, &mut changes)?;
    }
    let count = changes.len() as u64;
    for mut change in changes {
        if options.content_bytes > 0 && (change.conflict || !options.conflicts_only) {
            add_contents(place, &mut change, options.content_bytes, options.binary_contents)?;
        }
        answers.tell(Answer::Change(change))?;
    }
    Ok(JobDone { apply_id: String::new(), count })
}

/// From when on what the project's owner changes is in conflict with the sandbox's changes.
pub struct Since {
    attached_at_ns: i64,
    rebased_at_ns: i64,
    /// Where the rebase does not count.
    except: HashSet<Vec<u8>>,
}

impl Since {
    pub fn new(attached_at_ns: i64, rebased: Option<&Rebased>) -> Self {
        let rebased_at_ns = rebased.map_or(attached_at_ns, |rebased| rebased.at_ns);
        let except = rebased.map(|rebased| rebased.except.iter().cloned().collect()).unwrap_or_default();
        Self { attached_at_ns, rebased_at_ns, except }
    }

    fn at(&self, path: &[u8]) -> i64 {
        if self.except.contains(path) { self.attached_at_ns } else { self.rebased_at_ns }
    }
}

/// Every change, in the order of paths, without contents.
pub fn changes(place: &Place, since: Since) -> Result<Vec<LayerChange>, JobError> {
    let copied = place.copied_at_ns.map(|at_ns| Copied { at_ns, directories: Directories::read(&place.layer) });
    let seen = Seen { hidden: copied.is_some(), in_place: true, exchanged: false };
    let mut scan = Scan { known: Known::read(place)?, copied, since, found: Vec::new() };
    scan.directory(place.upper.as_fd(), Some(place.lower.as_fd()), b"", seen)?;
    scan.deleted_unmarked(place)?;
    scan.found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(scan.found)
}

struct Scan {
    known: Known,
    copied: Option<Copied>,
    since: Since,
    found: Vec<LayerChange>,
}

/// The copy that a sandbox was given.
struct Copied {
    at_ns: i64,
    directories: Directories,
}

/// What is known of a directory of the layer, and of everything below it.
#[derive(Clone, Copy)]
struct Seen {
    /// None of the project's are seen through it.
    hidden: bool,
    /// It is where the copy had it.
    in_place: bool,
    /// The host has put another directory in the place of the project's. What is in that one may be old, and nobody inside saw it.
    exchanged: bool,
}

impl Scan {
    /// Compares one directory of the layer with the project's, if it has it.
    fn directory(
        &mut self,
        upper: BorrowedFd,
        lower: Option<BorrowedFd>,
        path: &[u8],
        seen: Seen,
    ) -> Result<(), JobError> {
        let names = beneath::names(upper)?;
        if let (true, Some(lower)) = (seen.hidden, lower) {
            for name in beneath::names(lower)? {
                if names.binary_search(&name).is_err() {
                    self.deleted(lower, &name, beneath::join(path, &name), seen.exchanged)?;
                }
            }
        }
        for name in &names {
            self.entry(upper, lower, name, beneath::join(path, name), seen)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        upper: BorrowedFd,
        lower: Option<BorrowedFd>,
        name: &OsStr,
        path: Vec<u8>,
        seen: Seen,
    ) -> Result<(), JobError> {
        let Some(new) = beneath::stat(upper, name)? else { return Ok(()) };
        self.known.met(&path);
        let old = match lower {
            Some(lower) => beneath::stat(lower, name)?,
            None => None,
        };
        if layer::is_whiteout(&new) {
            return match (lower, old) {
                (Some(lower), Some(_)) => self.deleted(lower, name, path, seen.exchanged),
                _ => Ok(()),
            };
        }
        match (lower, &old) {
            _ if self.known.is_delivered(&path, Identity::of_source(&new)) || self.is_untouched(&path, &new, seen) => {}
            (Some(lower), Some(old)) => self.both((upper, &new), (lower, old), name, &path, seen.exchanged)?,
            _ => self.push(change(path.clone(), Kind::Added, None, Some(layer::state(upper, name, &new)?), false)),
        }
        if layer::file_type(&new) == Type::Directory {
            self.below(upper, lower, old.as_ref(), name, &path, seen)?;
        }
        Ok(())
    }

    /// The layer and the project both have the name.
    fn both(
        &mut self,
        (upper, new): (BorrowedFd, &Stat),
        (lower, old): (BorrowedFd, &Stat),
        name: &OsStr,
        path: &[u8],
        exchanged: bool,
    ) -> Result<(), JobError> {
        let conflict = exchanged || self.conflicts(old, path);
        let (before, after) = (layer::state(lower, name, old)?, layer::state(upper, name, new)?);
        let looks_other = before.r#type != after.r#type || before.target != after.target || before.size != after.size;
        let regular = layer::file_type(new) == Type::Regular;
        if path == git_index::PATH
            && regular
            && layer::file_type(old) == Type::Regular
            && git_index::stage_the_same((upper, name), (lower, name))?
        {
            return Ok(());
        }
        let kind = if looks_other || (regular && !compare::same_content((upper, name), (lower, name))?) {
            Kind::Modified
        } else if before.mode != after.mode && layer::file_type(new) != Type::Symlink {
            Kind::Mode
        } else {
            return Ok(());
        };
        if layer::file_type(old) == Type::Directory && before.r#type != after.r#type {
            self.deleted_below(lower, name, path, conflict)?;
        }
        self.push(change(path.to_vec(), kind, Some(before), Some(after), conflict));
        Ok(())
    }

    fn below(
        &mut self,
        upper: BorrowedFd,
        lower: Option<BorrowedFd>,
        old: Option<&Stat>,
        name: &OsStr,
        path: &[u8],
        seen: Seen,
    ) -> Result<(), JobError> {
        let inner = beneath::open_directory(upper, name.as_encoded_bytes())?;
        let project = match (lower, old) {
            (Some(lower), Some(old)) if layer::file_type(old) == Type::Directory => {
                open_if_there(lower, name.as_encoded_bytes())?
            }
            _ => None,
        };
        // Below an opaque directory none of the project's are seen, though they are not marked themselves.
        let hidden = seen.hidden || layer::is_opaque(&inner);
        let in_place = match &self.copied {
            Some(copied) if seen.in_place => copied.directories.is_in_place(path, fs::fstat(&inner)?.st_ino),
            _ => false,
        };
        let exchanged = seen.exchanged || old.is_some_and(|old| self.conflicts(old, path));
        self.directory(inner.as_fd(), project.as_ref().map(AsFd::as_fd), path, Seen { hidden, in_place, exchanged })
    }

    /// Is it what the copy had there? Where it differs from the project now, the host has changed that, or an apply
    /// before the sandbox put it back.
    fn is_untouched(&self, path: &[u8], new: &Stat, seen: Seen) -> bool {
        seen.in_place
            && self.copied.as_ref().is_some_and(|copied| layer::ctime_ns(new) < copied.at_ns)
            && !self.known.was_delivered(path)
    }

    /// What the sandbox deleted without a mark in the layer.
    fn deleted_unmarked(&mut self, place: &Place) -> Result<(), JobError> {
        let missing = self.known.take_missing();
        let mut told: HashSet<Vec<u8>> = self.found.iter().map(|change| change.path.clone()).collect();
        for path in missing {
            if told.contains(&path) {
                continue;
            }
            let Some((parent, name)) = beneath::split(&path) else { continue };
            let Some(lower) = open_if_there(&place.lower, parent)? else { continue };
            let (name, before) = (name.to_owned(), self.found.len());
            self.deleted(lower.as_fd(), &name, path, false)?;
            told.extend(self.found[before..].iter().map(|change| change.path.clone()));
        }
        Ok(())
    }

    /// Something of the project is gone; a directory with everything in it.
    fn deleted(&mut self, lower: BorrowedFd, name: &OsStr, path: Vec<u8>, exchanged: bool) -> Result<(), JobError> {
        let Some(old) = beneath::stat(lower, name)? else { return Ok(()) };
        let conflict = exchanged || self.conflicts(&old, &path);
        if layer::file_type(&old) == Type::Directory {
            self.deleted_below(lower, name, &path, conflict)?;
        }
        if self.known.is_delivered(&path, Identity::GONE) || self.never_copied(&old, layer::born_ns(lower, name)) {
            return Ok(());
        }
        let state = layer::state(lower, name, &old)?;
        self.push(change(path, Kind::Deleted, Some(state), None, conflict));
        Ok(())
    }

    fn deleted_below(&mut self, lower: BorrowedFd, name: &OsStr, path: &[u8], exchanged: bool) -> Result<(), JobError> {
        let Some(dir) = open_if_there(lower, name.as_encoded_bytes())? else { return Ok(()) };
        for inner in beneath::names(&dir)? {
            let inner_path = beneath::join(path, &inner);
            self.deleted(dir.as_fd(), &inner, inner_path, exchanged)?;
        }
        Ok(())
    }

    /// Was the project's file changed since the sandbox attached it, by anybody but us? A directory: did it get another mode, or come
    /// from elsewhere? Its entries change both of its times.
    fn conflicts(&self, old: &Stat, path: &[u8]) -> bool {
        let by_entries = layer::file_type(old) == Type::Directory && layer::ctime_ns(old) == layer::mtime_ns(old);
        !by_entries && self.changed_after(old, self.since.at(path))
    }

    fn changed_after(&self, old: &Stat, since_ns: i64) -> bool {
        layer::ctime_ns(old) > since_ns && !self.known.is_ours(old)
    }

    /// A copy has no sockets and the like, and nothing that was made since.
    fn never_copied(&self, old: &Stat, born: Option<i64>) -> bool {
        self.copied.is_some()
            && match layer::file_type(old) {
                Type::Special => true,
                // Its entries change a directory's ctime.
                Type::Directory => {
                    born.is_none_or(|born| born > self.since.attached_at_ns) && !self.known.is_our_directory(old)
                }
                // Where that is not known, what was changed is taken for new.
                _ => match born {
                    Some(born) => born > self.since.attached_at_ns && !self.known.is_ours(old),
                    None => self.changed_after(old, self.since.attached_at_ns),
                },
            }
    }

    fn push(&mut self, change: LayerChange) {
        self.found.push(change);
    }
}

fn change(
    path: Vec<u8>,
    kind: Kind,
    old: Option<crate::proto::keeper::LayerState>,
    new: Option<crate::proto::keeper::LayerState>,
    conflict: bool,
) -> LayerChange {
    LayerChange { path, kind: kind.into(), from: Vec::new(), old, new, conflict }
}

fn open_if_there(dir: impl AsFd, path: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    match beneath::open_directory(dir, path) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn add_contents(place: &Place, change: &mut LayerChange, limit: u64, binary: bool) -> Result<(), JobError> {
    let old_path = if change.from.is_empty() { &change.path } else { &change.from };
    for (root, path, state) in
        [(&place.lower, old_path, &mut change.old), (&place.upper, &change.path, &mut change.new)]
    {
        let (Some(state), Some((parent, name))) = (state.as_mut(), beneath::split(path)) else { continue };
        if state.r#type != i32::from(Type::Regular) {
            continue;
        }
        if let Ok(dir) = beneath::open_directory(root, parent) {
            compare::read_content(&dir, name, state, limit, binary)?;
        }
    }
    Ok(())
}
