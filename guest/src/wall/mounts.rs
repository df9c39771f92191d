//! Attaching what the broker handed in, and making everything else read-only.

use std::{cell::Cell, collections::HashSet, os::fd::OwnedFd};

use rustix::{
    io,
    mount::{MountAttrFlags, MoveMountFlags, move_mount},
};

use super::{
    covers, etc,
    mountinfo::{self, MountEntry},
    overlay::Stage,
    place::{self, Ground},
    plan::{Attachment, Plan},
    report::Report,
    root,
    step::{During, SealError, Step},
    tmpfs,
};
use crate::{proto::link::Seal, sys};

/// The world after the mounts, by mount point.
#[derive(Default)]
pub struct Layout {
    /// Where commands may write.
    pub writable: Vec<String>,
    /// Everything that is meant to be there.
    pub known: HashSet<String>,
    /// What the daemon asked for by name.
    pub asked: HashSet<String>,
}

/// What the sandbox was born with, bounded and furnished.
#[derive(Default)]
pub struct Prepared {
    before: Vec<MountEntry>,
    writable: Vec<String>,
}

thread_local! {
    /// What `warm_up` has found; nobody but PID 1 mounts anything in its namespace.
    static FOUND: Cell<Option<Vec<MountEntry>>> = const { Cell::new(None) };
}

/// Looks ahead at what the sandbox was born with.
pub fn warm_up() {
    FOUND.set(mountinfo::read().ok());
}

/// Lays out everything that does not lie in a mount that is handed in.
pub fn prepare(seal: &Seal, report: &mut Report) -> Result<Prepared, SealError> {
    let before = match FOUND.take() {
        Some(found) => found,
        None => mountinfo::read().during(Step::Mounts, "/proc/self/mountinfo")?,
    };
    let ground = Ground::new(&before);
    let writable = bound_private(seal, &before, report)?;
    etc::write(seal, &ground)?;
    set_modes(&ground)?;
    Ok(Prepared { before, writable })
}

pub fn attach(plan: &Plan<'_>, prepared: Prepared, report: &mut Report) -> Result<Layout, SealError> {
    let Prepared { before, mut writable } = prepared;
    let ground = Ground::new(&before);
    let mut stage = Stage::new(&ground).during(Step::Mounts, "a stage for layers")?;
    let mut unguarded = Vec::new();
    let mut laid_out = Vec::new();
    for attachment in &plan.attachments {
        let path = attachment.path();
        if let Attachment::Root { tree } = attachment {
            let laid = root::lay_out(tree, &mut stage, &ground, &root::own_places(plan, &before))
                .during(Step::Mounts, "the image")?;
            laid_out = laid.mounted;
            if !laid.guarded {
                unguarded.push("the image".to_owned());
            }
            continue;
        }
        let guarded =
            attach_one(attachment, plan.seal, &mut stage, &ground).during(Step::Mounts, explain(attachment))?;
        if !guarded {
            unguarded.push(path.to_owned());
        }
        if !matches!(attachment, Attachment::Bind { read_only: true, .. }) {
            writable.push(path.to_owned());
        }
    }
    stage.clear().during(Step::Mounts, "clearing the stage")?;
    match unguarded.is_empty() {
        true => report.holds("sockets.host", "overlay", "sockets inside what is mounted cannot be connected to"),
        false => report.lacks("sockets.host", "bind", format!("sockets in {} can be reached", unguarded.join(", "))),
    }

    for path in [&plan.seal.home, &plan.seal.workdir] {
        ground.directory(path).during(Step::Mounts, path)?;
    }
    let denied = covers::deny_read(&plan.seal.deny_read, &ground, report)?;
    for path in ["/", "/dev"] {
        make_read_only(path, &before).during(Step::Mounts, format!("{path} read-only"))?;
    }
    let asked: HashSet<String> = plan.attachments.iter().map(|attachment| attachment.path().to_owned()).collect();
    let mut known: HashSet<String> = before.into_iter().map(|mount| mount.path).collect();
    known.extend(covers::PROC_READ_ONLY.map(String::from).into_iter().chain(denied).chain(asked.iter().cloned()));
    known.extend(laid_out);
    Ok(Layout { writable, known, asked })
}

/// Bounds each private tmpfs and returns where they are; `/` and `/dev` become read-only instead.
fn bound_private(seal: &Seal, before: &[MountEntry], report: &mut Report) -> Result<Vec<String>, SealError> {
    let (bytes, inodes) = (seal.tmpfs_bytes, seal.tmpfs_inodes);
    let mut private = Vec::new();
    for mount in before {
        if !mount.is_private() || mount.path == "/" || mount.path == "/dev" {
            continue;
        }
        if bytes > 0 || inodes > 0 {
            tmpfs::bound(&mount.path, bytes, inodes).during(Step::Mounts, format!("bounding {}", mount.path))?;
        }
        private.push(mount.path.clone());
    }
    if bytes > 0 {
        let files = if inodes > 0 { format!(" and {inodes} files") } else { String::new() };
        report.holds("limit.tmpfs", "tmpfs size", format!("{bytes} bytes{files} in each of {}", private.join(", ")));
    }
    Ok(private)
}

/// The modes that programs expect; bubblewrap makes directories for itself alone.
fn set_modes(ground: &Ground) -> Result<(), SealError> {
    for (path, mode) in [
        ("/etc", 0o755),
        ("/home", 0o755),
        ("/run", 0o755),
        ("/tmp", 0o1777),
        ("/var/tmp", 0o1777),
        ("/dev/shm", 0o1777),
    ] {
        ground.set_mode(path, mode).during(Step::Mounts, path)?;
    }
    Ok(())
}

/// Attaches one thing; false when sockets of the host inside it can be reached.
fn attach_one(attachment: &Attachment, seal: &Seal, stage: &mut Stage, ground: &Ground) -> io::Result<bool> {
    match attachment {
        Attachment::Private { path } => {
            ground.directory(path)?;
            tmpfs::mount_at(path, 0o755, seal.tmpfs_bytes, seal.tmpfs_inodes)?;
            Ok(true)
        }
        // Laid out before everything else.
        Attachment::Root { .. } => Ok(true),
        Attachment::Overlay { path, lower, layers } => {
            move_to(&stage.writable(lower, layers)?, &ground.directory(path)?)?;
            Ok(true)
        }
        Attachment::Bind { path, read_only: true, is_file: false, tree } => {
            let place = ground.directory(path)?;
            // Connecting to a socket works through a read-only bind and is refused through an overlay.
            if let Ok(mount) = stage.read_only(tree) {
                move_to(&mount, &place)?;
                return Ok(true);
            }
            bind(tree, &place, true)?;
            Ok(false)
        }
        Attachment::Bind { path, read_only, is_file: true, tree } => {
            bind(tree, &ground.file(path)?, *read_only)?;
            Ok(true)
        }
        Attachment::Bind { path, read_only, is_file: false, tree } => {
            bind(tree, &ground.directory(path)?, *read_only)?;
            Ok(false)
        }
    }
}

pub fn bind(tree: &OwnedFd, place: &OwnedFd, read_only: bool) -> io::Result<()> {
    move_to(tree, place)?;
    // Only once it is attached here may this namespace change it. Nothing else runs yet.
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if read_only {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    sys::mount::add_attributes(tree, attributes, true)
}

/// Attaches a mount, by its root, to a place.
pub fn move_to(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let by_descriptor = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", place, "", by_descriptor)
}

fn make_read_only(path: &str, before: &[MountEntry]) -> io::Result<()> {
    if !before.iter().any(|mount| mount.path == path) {
        return Ok(());
    }
    sys::mount::add_attributes(place::existing(path)?, MountAttrFlags::MOUNT_ATTR_RDONLY, false)
}

fn explain(attachment: &Attachment) -> String {
    let path = attachment.path();
    match attachment {
        Attachment::Overlay { .. } => {
            format!("the overlay at {path} (a file system mounted inside the project makes this fail)")
        }
        Attachment::Bind { .. } | Attachment::Root { .. } => format!("the mount at {path}"),
        Attachment::Private { .. } => format!("a directory of its own at {path}"),
    }
}
