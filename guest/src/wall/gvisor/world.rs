//! What a sandbox in gVisor sees, made by the older mount calls.

use std::{fs, path::Path};

use rustix::{
    fs::{FileType, Gid, Mode, OFlags, Uid, chmod, chown},
    io::Errno,
    mount::{UnmountFlags, mount_bind, unmount},
};

use crate::{
    proto::link::Seal,
    wall::{
        etc, mountinfo,
        place::{self, Ground},
        plan::{Attachment, Plan},
        report::Report,
        step::{During, SealError, Step},
        tmpfs,
    },
};

/// Mounted anew with their bound: gVisor cannot change that of one that is there.
const BOUNDED: [(&str, u32); 4] = [("/dev/shm", 0o1777), ("/home", 0o755), ("/tmp", 0o1777), ("/var/tmp", 0o1777)];
/// Devices that gVisor makes and no command needs.
const NEEDLESS: [&str; 2] = ["/dev/fuse", "/dev/net"];
/// Where commands find the guest's programs, and where the guest really is: a file cannot be mounted below a tmpfs.
const FOLDER: &str = "/run/caisson";
const GUEST: &str = "/.caisson-guest";
/// With a number: what is shown below a place that is mounted anew, meanwhile.
const ASIDE: &str = "/.caisson-aside-";
/// Laid over files that may not be read.
const NOTHING: &str = "/.caisson-nothing";

pub fn furnish(seal: &Seal, report: &mut Report) -> Result<(), SealError> {
    let shown = set_aside()?;
    for (path, mode) in BOUNDED {
        tmpfs::mount_at(path, mode, seal.tmpfs_bytes, 0).during(Step::Mounts, path)?;
    }
    put_back(&shown, seal)?;
    if seal.tmpfs_bytes > 0 {
        let paths = BOUNDED.map(|(path, _)| path).join(", ");
        report.holds("limit.tmpfs", "tmpfs size", format!("{} bytes in each of {paths}", seal.tmpfs_bytes));
    }
    let ground = ground()?;
    etc::write(seal, &ground)?;
    let folder = ground.directory(FOLDER).during(Step::Mounts, FOLDER)?;
    ground.link(&folder, "guest", GUEST).during(Step::Mounts, FOLDER)?;
    remove_needless()
}

/// Directories of the host that were shown below what is mounted anew, by where they are meanwhile.
fn set_aside() -> Result<Vec<(String, String)>, SealError> {
    let mounts = mountinfo::read().during(Step::Mounts, "/proc/self/mountinfo")?;
    let is_covered = |path: &str| BOUNDED.iter().any(|(place, _)| path.strip_prefix(place).is_some_and(below));
    let mut shown = Vec::new();
    // A file cannot be mounted below a tmpfs.
    for mount in mounts.iter().filter(|mount| is_covered(&mount.path) && Path::new(&mount.path).is_dir()) {
        let aside = format!("{ASIDE}{}", shown.len());
        fs::create_dir(&aside).during(Step::Mounts, &mount.path)?;
        mount_bind(&mount.path, &aside).during(Step::Mounts, &mount.path)?;
        shown.push((mount.path.clone(), aside));
    }
    Ok(shown)
}

fn below(rest: &str) -> bool {
    rest.starts_with('/')
}

fn put_back(shown: &[(String, String)], seal: &Seal) -> Result<(), SealError> {
    let ground = ground()?;
    let (uid, gid) = (Uid::from_raw(seal.uid), Gid::from_raw(seal.gid));
    for (path, aside) in shown {
        ground.directory(path).during(Step::Mounts, path)?;
        // Directories on the way are the sandbox's own.
        let is_place = |above: &Path| BOUNDED.iter().any(|(place, _)| above == Path::new(place));
        for above in Path::new(path).ancestors().skip(1).take_while(|above| !is_place(above)) {
            chown(above, Some(uid), Some(gid)).during(Step::Mounts, path)?;
        }
        mount_bind(aside, path).during(Step::Mounts, path)?;
        unmount(aside, UnmountFlags::DETACH).during(Step::Mounts, path)?;
        fs::remove_dir(aside).during(Step::Mounts, path)?;
    }
    Ok(())
}

/// Once they are gone this costs a look at each.
pub fn remove_needless() -> Result<(), SealError> {
    for path in NEEDLESS {
        let removed = match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(_) => Ok(()),
        };
        removed.during(Step::Mounts, path)?;
    }
    Ok(())
}

/// The project's place, the home directory, and covers over what may not be read.
pub fn complete(plan: &Plan<'_>, report: &mut Report) -> Result<(), SealError> {
    let (seal, ground) = (plan.seal, ground()?);
    let mut owned: Vec<&str> = vec!["/run", FOLDER];
    owned.extend(BOUNDED.map(|(path, _)| path));
    for attachment in &plan.attachments {
        let Attachment::Private { path } = attachment else {
            return Err(Step::Mounts.error(format!("{}: nothing can be handed in here", attachment.path())));
        };
        ground.directory(path).during(Step::Mounts, path)?;
        tmpfs::mount_at(path, 0o755, seal.tmpfs_bytes, 0).during(Step::Mounts, path)?;
        owned.push(path);
    }
    // What was mounted just now is ground too.
    let ground = self::ground()?;
    for path in [&seal.home, &seal.workdir] {
        ground.directory(path).during(Step::Mounts, path)?;
    }
    if !owned.contains(&seal.home.as_str()) {
        owned.push(&seal.home);
    }
    deny_read(&seal.deny_read, report)?;
    let (uid, gid) = (Uid::from_raw(seal.uid), Gid::from_raw(seal.gid));
    for path in owned {
        chown(path, Some(uid), Some(gid)).during(Step::Mounts, format!("the owner of {path}"))?;
    }
    report.holds("sockets.host", "gVisor", "sockets of the host inside what is shown cannot be connected to");
    Ok(())
}

fn ground() -> Result<Ground, SealError> {
    Ok(Ground::of_gvisor(&mountinfo::read().during(Step::Mounts, "/proc/self/mountinfo")?))
}

fn deny_read(paths: &[String], report: &mut Report) -> Result<(), SealError> {
    let mut covered = 0;
    for path in paths {
        let Ok(real) = fs::canonicalize(path) else { continue };
        let real = real.to_string_lossy().into_owned();
        let place = place::existing(&real).during(Step::Mounts, path)?;
        let kind = rustix::fs::fstat(&place).during(Step::Mounts, path)?.st_mode;
        if FileType::from_raw_mode(kind).is_dir() {
            tmpfs::mount_at(&real, 0, 4096, 0).during(Step::Mounts, format!("covering {path}"))?;
        } else {
            nothing().during(Step::Mounts, NOTHING)?;
            mount_bind(NOTHING, &real).during(Step::Mounts, format!("covering {path}"))?;
        }
        covered += 1;
    }
    if !paths.is_empty() {
        let absent = paths.len() - covered;
        report.holds("paths.deny_read", "mounts", format!("{covered} paths covered; nothing was at {absent} others"));
    }
    Ok(())
}

/// An empty file of root's that nobody else may open.
fn nothing() -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(NOTHING, flags, Mode::empty())?;
    chmod(NOTHING, Mode::empty())
}
