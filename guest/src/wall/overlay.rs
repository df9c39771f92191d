//! Overlay mounts: the project's, and the read-only ones that keep host sockets out of reach.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{Mode, OFlags},
    io::{self, Errno},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_fd,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
    },
};

use super::place::Ground;

/// Where layers stand while an overlay is made on kernels that take layers by path only.
const STAGE: &str = "/.caisson";

/// The writable half: a directory that holds `upper` and `work`.
pub struct Upper<'a> {
    pub layers: BorrowedFd<'a>,
}

/// Makes an overlay and returns it detached. The layers stay usable by it alone: the kernel keeps private
/// copies of their mounts.
pub fn make(lower: &[BorrowedFd<'_>], upper: Option<&Upper<'_>>, ground: &Ground) -> io::Result<OwnedFd> {
    if let Some(upper) = upper {
        for name in ["upper", "work"] {
            match rustix::fs::mkdirat(upper.layers, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    match by_descriptor(lower, upper) {
        // Layers by descriptor came with Linux 6.13.
        Err(Errno::INVAL) => by_path(lower, upper, ground),
        other => other,
    }
}

fn by_descriptor(lower: &[BorrowedFd<'_>], upper: Option<&Upper<'_>>) -> io::Result<OwnedFd> {
    let context = context()?;
    for layer in lower {
        fsconfig_set_fd(&context, "lowerdir+", layer)?;
    }
    if let Some(upper) = upper {
        fsconfig_set_fd(&context, "upperdir", inside(upper, "upper")?)?;
        fsconfig_set_fd(&context, "workdir", inside(upper, "work")?)?;
    }
    finish(context, upper.is_some())
}

fn by_path(lower: &[BorrowedFd<'_>], upper: Option<&Upper<'_>>, ground: &Ground) -> io::Result<OwnedFd> {
    let stages: Vec<(String, BorrowedFd<'_>)> = lower
        .iter()
        .chain(upper.map(|upper| &upper.layers))
        .enumerate()
        .map(|(index, layer)| (format!("{STAGE}/{index}"), *layer))
        .collect();
    let mut staged = Vec::new();
    let result = stages
        .iter()
        .try_for_each(|(path, layer)| {
            let place = ground.directory(path)?;
            move_mount(layer, "", &place, "", BOTH_EMPTY)?;
            staged.push(path);
            Ok(())
        })
        .and_then(|()| {
            let context = context()?;
            let lowers: Vec<&str> = stages[..lower.len()].iter().map(|(path, _)| path.as_str()).collect();
            fsconfig_set_string(&context, "lowerdir", lowers.join(":"))?;
            if upper.is_some() {
                let layers = &stages[lower.len()].0;
                fsconfig_set_string(&context, "upperdir", format!("{layers}/upper"))?;
                fsconfig_set_string(&context, "workdir", format!("{layers}/work"))?;
            }
            finish(context, upper.is_some())
        });
    for path in staged {
        unmount(path.as_str(), UnmountFlags::DETACH)?;
    }
    result
}

pub const BOTH_EMPTY: MoveMountFlags =
    MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH.union(MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH);

fn context() -> io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", "caisson")?;
    // The sandbox cannot set trusted.* attributes.
    fsconfig_set_flag(&context, "userxattr")?;
    Ok(context)
}

fn finish(context: OwnedFd, writable: bool) -> io::Result<OwnedFd> {
    fsconfig_create(&context)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if !writable {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn inside(upper: &Upper<'_>, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(upper.layers, name, flags, Mode::empty())
}
