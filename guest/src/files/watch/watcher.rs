//! The kernel's watches, one per directory, kept in step with a tree that changes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{
        OFlags, fstat,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    },
    io::Errno,
};

use crate::{
    files::{
        directory::{Entry, Tree, join},
        entry::kind,
        path::SandboxPath,
        root::{DIRECTORY, LOOK, Root},
    },
    proto::link::{Change, change::Kind, file_entry::Type},
};

/// Each watch holds kernel memory that all sandboxes share.
const MAX_WATCHES: usize = 8192;
const BUFFER_BYTES: usize = 32 * 1024;

const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR);

pub struct Watcher<'a> {
    root: &'a Root,
    inotify: OwnedFd,
    /// The watched directory, to which all paths are relative. No descriptor of it is kept: that would keep the
    /// directory itself, and its removal would never be told.
    base: SandboxPath,
    identity: (u64, u64),
    is_recursive: bool,
    paths: HashMap<i32, Vec<u8>>,
    watches: BTreeMap<Vec<u8>, i32>,
    /// Found by a scan, so that their own events, if still to come, are not told again.
    told: HashSet<Vec<u8>>,
    /// There were more directories than watches.
    pub is_full: bool,
    /// The watched directory itself was removed.
    pub is_gone: bool,
}

/// One event, apart from the buffer it came in.
struct Event {
    watch: i32,
    flags: ReadFlags,
    name: Vec<u8>,
}

impl<'a> Watcher<'a> {
    /// Every change after this will be told.
    pub fn new(root: &'a Root, base: SandboxPath, is_recursive: bool) -> Result<Self, Errno> {
        let stat = fstat(root.open_at(&base, LOOK | OFlags::DIRECTORY)?)?;
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut watcher = Self {
            root,
            inotify,
            base,
            identity: (stat.st_dev, stat.st_ino),
            is_recursive,
            paths: HashMap::new(),
            watches: BTreeMap::new(),
            told: HashSet::new(),
            is_full: false,
            is_gone: false,
        };
        watcher.scan(&[], None)?;
        // It must be there at least now.
        if watcher.paths.is_empty() { Err(Errno::NOENT) } else { Ok(watcher) }
    }

    /// What has happened since the last call; some of it, if it is much.
    pub fn changes(&mut self) -> Result<Vec<Change>, Errno> {
        let mut changes = Vec::new();
        for event in self.read()? {
            self.heed(&event, &mut changes)?;
        }
        // Nothing waits: every event from before the last scan's end has been seen.
        if !self.told.is_empty() && rustix::io::ioctl_fionread(&self.inotify)? == 0 {
            self.told.clear();
        }
        Ok(changes)
    }

    fn read(&self) -> Result<Vec<Event>, Errno> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut events = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_bytes().to_vec()).unwrap_or_default();
                    events.push(Event { watch: event.wd(), flags: event.events(), name });
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(events),
                Err(error) => return Err(error),
            }
            if reader.is_buffer_empty() {
                return Ok(events);
            }
        }
    }

    fn heed(&mut self, event: &Event, changes: &mut Vec<Change>) -> Result<(), Errno> {
        if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            changes.push(change(Kind::Overflow, Vec::new(), Type::Unspecified));
            // Directories may have come unseen.
            return self.scan(&[], None);
        }
        let Some(directory) = self.paths.get(&event.watch).cloned() else { return Ok(()) };
        if event.flags.contains(ReadFlags::IGNORED) {
            self.paths.remove(&event.watch);
            self.watches.remove(&directory);
            if directory.is_empty() {
                self.is_gone = true;
                changes.push(change(Kind::Removed, Vec::new(), Type::Directory));
            }
            return Ok(());
        }
        // Events about the watched directory itself have no name; its parent's watch tells them.
        if event.name.is_empty() {
            return Ok(());
        }
        let path = join(&directory, &event.name);
        let is_directory = event.flags.contains(ReadFlags::ISDIR);
        if event.flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            self.told.remove(&path);
            if is_directory {
                self.forget_below(&path);
            }
            let kind = if is_directory { Type::Directory } else { Type::Unspecified };
            changes.push(change(Kind::Removed, path, kind));
        } else if event.flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            if !self.told.remove(&path) {
                changes.push(change(Kind::Created, path.clone(), self.kind_of(&path, is_directory)));
            }
            if is_directory && self.is_recursive {
                self.scan(&path, Some(changes))?;
            }
        } else {
            let is_repeated = changes.last().is_some_and(|last| last.kind() == Kind::Modified && last.path == path);
            if !is_repeated {
                let kind = self.kind_of(&path, is_directory);
                changes.push(change(Kind::Modified, path, kind));
            }
        }
        Ok(())
    }

    /// Watches a directory and, if asked, all below it; first the watch, then the look, so that nothing falls
    /// between. With `changes`, what is found is told as created.
    fn scan(&mut self, path: &[u8], mut changes: Option<&mut Vec<Change>>) -> Result<(), Errno> {
        if !self.add(path, &mut changes)? || !self.is_recursive {
            return Ok(());
        }
        let here: &[u8] = if path.is_empty() { b"." } else { path };
        let mut tree = match self.open(here, DIRECTORY) {
            Ok(directory) => Tree::new(directory, false)?,
            Err(error) => return passing(error),
        };
        while let Some(found) = tree.next()? {
            let below = join(path, &found.path);
            if let Some(changes) = changes.as_mut()
                && self.told.insert(below.clone())
            {
                changes.push(change(Kind::Created, below.clone(), kind(&found.stat)));
            }
            if kind(&found.stat) != Type::Directory || !self.add(&below, &mut changes)? {
                continue;
            }
            match tree.enter(&found) {
                Ok(Entry::TooDeep) => self.fill(&mut changes),
                Ok(_) => {}
                Err(error) => passing(error)?,
            }
        }
        Ok(())
    }

    /// Sets one watch; false if the directory is gone, closed to us, or one too many.
    fn add(&mut self, path: &[u8], changes: &mut Option<&mut Vec<Change>>) -> Result<bool, Errno> {
        let here: &[u8] = if path.is_empty() { b"." } else { path };
        let directory = match self.open(here, LOOK | OFlags::DIRECTORY) {
            Ok(directory) => directory,
            Err(error) => return passing(error).map(|()| false),
        };
        if self.paths.len() >= MAX_WATCHES && !self.watches.contains_key(path) {
            self.fill(changes);
            return Ok(false);
        }
        // By its descriptor, so that no name can be exchanged for a link on the way.
        let descriptor = format!("/proc/self/fd/{}", directory.as_raw_fd());
        match inotify::add_watch(&self.inotify, descriptor, EVENTS) {
            Ok(watch) => {
                if let Some(before) = self.paths.insert(watch, path.to_vec()) {
                    self.watches.remove(&before);
                }
                self.watches.insert(path.to_vec(), watch);
                Ok(true)
            }
            Err(Errno::NOSPC) => {
                self.fill(changes);
                Ok(false)
            }
            Err(error) => passing(error).map(|()| false),
        }
    }

    /// Opens something below the watched directory, if that is still the same one.
    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let base = self.root.open_at(&self.base, LOOK | OFlags::DIRECTORY)?;
        let stat = fstat(&base)?;
        if (stat.st_dev, stat.st_ino) != self.identity {
            return Err(Errno::NOENT);
        }
        self.root.open_below(&base, path, flags, true)
    }

    /// Says once that not everything is watched.
    fn fill(&mut self, changes: &mut Option<&mut Vec<Change>>) {
        if !self.is_full
            && let Some(changes) = changes.as_mut()
        {
            changes.push(change(Kind::Overflow, Vec::new(), Type::Unspecified));
        }
        self.is_full = true;
    }

    /// A directory that was moved away takes its watches along; they are not ours any more.
    fn forget_below(&mut self, path: &[u8]) {
        let below = join(path, b"");
        let gone: Vec<Vec<u8>> = self
            .watches
            .range(path.to_vec()..)
            .map(|(known, _)| known)
            .take_while(|known| known.starts_with(path))
            .filter(|known| known.as_slice() == path || known.starts_with(&below))
            .cloned()
            .collect();
        for path in gone {
            if let Some(watch) = self.watches.remove(&path) {
                self.paths.remove(&watch);
                // Already gone if the directory was removed.
                let _ = inotify::remove_watch(&self.inotify, watch);
            }
        }
    }

    fn kind_of(&self, path: &[u8], is_directory: bool) -> Type {
        if is_directory {
            return Type::Directory;
        }
        let found = self.open(path, LOOK).and_then(fstat);
        found.map_or(Type::Unspecified, |stat| kind(&stat))
    }
}

impl AsFd for Watcher<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// A directory that cannot be looked into now is no reason to stop watching the others.
fn passing(error: Errno) -> Result<(), Errno> {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NAMETOOLONG | Errno::INVAL => Ok(()),
        error => Err(error),
    }
}

fn change(kind: Kind, path: Vec<u8>, found: Type) -> Change {
    Change { kind: kind.into(), path, r#type: found.into() }
}
