//! Overlay mounts: the project's, and the read-only ones that keep host sockets out of reach.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
    io::{self, Errno},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen, unmount,
    },
};

use super::{
    mounts::{bind, move_to},
    place::Ground,
    tmpfs,
};

const FOLDER: &str = "/.caisson";
const EMPTY: &str = "/.caisson/empty";

/// Where layers stand while overlays are made of them: the kernel takes only layers that are attached in
/// this namespace. Overlays keep private copies of their layers' mounts, so that these can go afterwards.
pub struct Stage {
    count: usize,
}

impl Stage {
    pub fn new(ground: &Ground) -> io::Result<Self> {
        let place = ground.directory(FOLDER)?;
        move_to(&tmpfs::make("700", 0, MountAttrFlags::empty())?, &place)?;
        rustix::fs::mkdir(EMPTY, Mode::from_raw_mode(0o555))?;
        Ok(Stage { count: 0 })
    }

    /// Reads pass through to `lower`, writes stay in `layers`, a directory that holds `upper` and `work`.
    pub fn writable(&mut self, lower: &OwnedFd, layers: &OwnedFd) -> io::Result<OwnedFd> {
        for name in ["upper", "work"] {
            match rustix::fs::mkdirat(layers, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(layers, name, flags, Mode::empty())?;
        }
        let (lower, layers) = (self.put(lower)?, self.put(layers)?);
        let context = context()?;
        fsconfig_set_string(&context, "lowerdir", lower)?;
        fsconfig_set_string(&context, "upperdir", format!("{layers}/upper"))?;
        fsconfig_set_string(&context, "workdir", format!("{layers}/work"))?;
        finish(&context, MountAttrFlags::empty())
    }

    /// The same tree, read-only, in which the host's sockets are mere names. On failure `tree` is left
    /// attached to the stage and cannot be used elsewhere than by another `move_mount`.
    pub fn read_only(&mut self, tree: &OwnedFd) -> io::Result<OwnedFd> {
        let lower = self.put(tree)?;
        let context = context()?;
        // Without an upper layer there must be two lower ones.
        fsconfig_set_string(&context, "lowerdir", format!("{lower}:{EMPTY}"))?;
        finish(&context, MountAttrFlags::MOUNT_ATTR_RDONLY)
    }

    /// Attaches the root of an image to the stage, read-only, and tells where; false if sockets in it can be reached.
    pub fn image(&mut self, tree: &OwnedFd) -> io::Result<(String, bool)> {
        let made = self.read_only(tree);
        let path = format!("{FOLDER}/image");
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o700))?;
        let place = rustix::fs::open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        match made {
            Ok(mount) => {
                move_to(&mount, &place)?;
                Ok((path, true))
            }
            Err(_) => {
                bind(tree, &place, true)?;
                Ok((path, false))
            }
        }
    }

    fn put(&mut self, tree: &OwnedFd) -> io::Result<String> {
        let path = format!("{FOLDER}/{}", self.count);
        self.count += 1;
        rustix::fs::mkdir(&path, Mode::from_raw_mode(0o700))?;
        let place = rustix::fs::open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        move_to(tree, &place)?;
        Ok(path)
    }

    /// Takes the stage down with everything on it.
    pub fn clear(self) -> io::Result<()> {
        unmount(FOLDER, UnmountFlags::DETACH)?;
        rustix::fs::unlinkat(CWD, FOLDER, AtFlags::REMOVEDIR)
    }
}

fn context() -> io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "caisson")?;
    // The sandbox cannot set trusted.* attributes.
    fsconfig_set_flag(&context, "userxattr")?;
    Ok(context)
}

fn finish(context: &OwnedFd, more: MountAttrFlags) -> io::Result<OwnedFd> {
    fsconfig_create(context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | more;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
