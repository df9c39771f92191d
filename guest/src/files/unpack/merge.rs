//! Moving a good archive's members to where they belong.

use std::{collections::HashSet, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fchmod, mkdirat, renameat, statat},
    io::Errno,
};

use super::stage::{ARCHIVE, Stage, above, cut, set_time};
use crate::{
    files::{
        directory::{Entry, Found, Tree},
        failure::{At, failure, from_errno},
        mkdir::make_parents,
        path::SandboxPath,
        root::{DIRECTORY, LOOK, Root},
    },
    proto::link::Failure,
};

pub fn merge(root: &Root, path: &SandboxPath, stage: &Stage<'_>) -> Result<(), Failure> {
    make_parents(root, path)?;
    let target = root.open_at(path, LOOK | OFlags::DIRECTORY).at(path)?;
    let mut merge = Merge { root, path, target, kept: HashSet::new() };
    // Everything is checked before anything is moved.
    merge.walk(stage, false)?;
    merge.walk(stage, true)?;
    merge.finish(stage)
}

struct Merge<'a> {
    root: &'a Root,
    path: &'a SandboxPath,
    target: OwnedFd,
    /// Directories that were there before.
    kept: HashSet<Vec<u8>>,
}

impl Merge<'_> {
    fn walk(&mut self, stage: &Stage<'_>, moves: bool) -> Result<(), Failure> {
        let staged = self.root.open_below(&stage.directory, b".", DIRECTORY, false).at(ARCHIVE)?;
        let mut tree = Tree::new(staged, true).at(ARCHIVE)?;
        while let Some(found) = tree.next().at(ARCHIVE)? {
            let (parent, name) = cut(&found.path);
            let place = self.root.open_below(&self.target, above(parent), LOOK | OFlags::DIRECTORY, true);
            let place = place.map_err(|error| self.at(&found, error))?;
            let goes_deeper =
                if moves { self.put(&tree, &found, &place, name)? } else { self.compare(&found, &place, name)? };
            if goes_deeper && tree.enter(&found).map_err(|error| self.at(&found, error))? == Entry::TooDeep {
                return Err(failure("TOO_LARGE", format!("{ARCHIVE} is nested too deep to be merged")));
            }
        }
        Ok(())
    }

    /// Whether both sides are directories, to be compared further. What cannot be replaced is an error.
    fn compare(&self, found: &Found, place: &OwnedFd, name: &[u8]) -> Result<bool, Failure> {
        let there = match statat(place, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => is_directory(stat.st_mode),
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(self.at(found, error)),
        };
        match (is_directory(found.stat.st_mode), there) {
            (false, false) => Ok(false),
            (true, true) => Ok(true),
            (true, false) => Err(failure("PATH_EXISTS", format!("{}: not a directory", self.shown(found)))),
            (false, true) => Err(failure("PATH_EXISTS", format!("{}: a directory", self.shown(found)))),
        }
    }

    /// Moves one member; true if it is a directory whose content is still to be moved.
    fn put(&mut self, tree: &Tree, found: &Found, place: &OwnedFd, name: &[u8]) -> Result<bool, Failure> {
        if self.compare(found, place, name)? {
            self.kept.insert(found.path.clone());
            return Ok(true);
        }
        match renameat(tree.directory(), found.name.as_slice(), place, name) {
            Ok(()) => Ok(false),
            // Some file systems do not move directories.
            Err(Errno::XDEV) if is_directory(found.stat.st_mode) => {
                mkdirat(place, name, Mode::RWXU).map_err(|error| self.at(found, error))?;
                Ok(true)
            }
            Err(error) => Err(self.at(found, error)),
        }
    }

    /// Gives new directories their modes and times, innermost first.
    fn finish(&self, stage: &Stage<'_>) -> Result<(), Failure> {
        let mut directories: Vec<_> = stage.directories.iter().filter(|(path, _)| !self.kept.contains(*path)).collect();
        directories.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        for (path, directory) in directories {
            let opened = match self.root.open_below(&self.target, path, DIRECTORY, true) {
                Ok(opened) => opened,
                // Whoever removed it meanwhile wanted it so.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(error) => return Err(from_errno(self.path, error)),
            };
            if let Some(modified) = directory.modified {
                set_time(&opened, modified).at(self.path)?;
            }
            fchmod(&opened, Mode::from_raw_mode(directory.mode)).at(self.path)?;
        }
        Ok(())
    }

    fn at(&self, found: &Found, error: Errno) -> Failure {
        from_errno(self.shown(found), error)
    }

    fn shown(&self, found: &Found) -> String {
        let path = String::from_utf8_lossy(&found.path);
        format!("{}/{}", self.path, path.chars().filter(|letter| !letter.is_control()).collect::<String>())
    }
}

fn is_directory(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::Directory
}
