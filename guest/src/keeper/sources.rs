//! Making the mounts that are handed to a guest.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, openat2},
    io::Errno,
    mount::{OpenTreeFlags, open_tree},
};

use super::{failure::Failure, mounts::nested_mount};
use crate::{
    proto::keeper::{Attachment, Source},
    sys::{
        mount_attr::{Attributes, set_attributes},
        namespace_holder::NamespaceHolder,
    },
};

/// A detached mount, and what it is of.
pub struct Prepared {
    pub mount: OwnedFd,
    pub attachment: Attachment,
}

/// An owner on the host and on the sandbox's side.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct OwnerMap {
    host: (u32, u32),
    sandbox: (u32, u32),
}

/// Makes mounts; remembers the namespaces that say how owners appear.
pub struct Preparer {
    /// The sandbox's uid and gid where they differ from the keeper's.
    sandbox: Option<(u32, u32)>,
    id_maps: HashMap<OwnerMap, OwnedFd>,
}

impl Preparer {
    pub fn new(sandbox: Option<(u32, u32)>) -> Self {
        Self { sandbox, id_maps: HashMap::new() }
    }

    /// The path is resolved once; everything after goes by the descriptor, so that nothing can be
    /// swapped in between.
    pub fn prepare(&mut self, source: &Source) -> Result<Prepared, Failure> {
        let (found, status) = open_source(&source.path)?;
        let kind = FileType::from_raw_mode(status.st_mode);
        if kind != FileType::Directory && kind != FileType::RegularFile {
            return Err(refused(source, "is neither a directory nor a regular file"));
        }
        if is_of_the_kernel(&found) {
            return Err(refused(source, "shows the host's kernel, not files"));
        }
        if source.refuse_nested
            && let Some(nested) = nested_below(&found)?
        {
            return Err(refused(source, &format!("has another file system mounted at {}", nested.display())));
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = open_tree(&found, "", flags).map_err(|errno| clone_failure(source, &found, errno))?;
        let id_map = self.id_map(source, &status)?;
        let attributes = Attributes { read_only: source.read_only, id_map: id_map.map(AsFd::as_fd) };
        set_attributes(mount.as_fd(), &attributes).map_err(|errno| match errno {
            Errno::INVAL if id_map.is_some() => refused(source, "is on a file system that cannot map owners"),
            _ => Failure::errno("WORKSPACE_REFUSED", format!("preparing the mount of {}", source.path), errno),
        })?;
        let attachment =
            Attachment { device: status.st_dev, inode: status.st_ino, is_file: kind == FileType::RegularFile };
        Ok(Prepared { mount, attachment })
    }

    fn id_map(&mut self, source: &Source, status: &Stat) -> Result<Option<&OwnedFd>, Failure> {
        let Some(sandbox) = self.sandbox.filter(|_| source.map_owner) else { return Ok(None) };
        let map = OwnerMap { host: (status.st_uid, status.st_gid), sandbox };
        let namespace = match self.id_maps.entry(map) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(
                mapping_namespace(&map)
                    .map_err(|error| Failure::new("WORKSPACE_REFUSED", format!("mapping owners: {error}")))?,
            ),
        };
        Ok(Some(namespace))
    }
}

/// Without following any link: a path that the daemon has checked must not lead elsewhere by now.
fn open_source(path: &str) -> Result<(OwnedFd, Stat), Failure> {
    let failed = |errno| match errno {
        Errno::NOENT | Errno::NOTDIR => Failure::errno("PATH_NOT_FOUND", path, errno),
        Errno::LOOP => Failure::new("WORKSPACE_REFUSED", format!("{path} leads through a symbolic link")),
        _ => Failure::errno("WORKSPACE_REFUSED", format!("opening {path}"), errno),
    };
    if !Path::new(path).is_absolute() {
        return Err(Failure::new("INVALID_PATH", "a source must be absolute"));
    }
    let found =
        openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS).map_err(failed)?;
    let status = fstat(&found).map_err(failed)?;
    Ok((found, status))
}

/// File systems through which a host is steered have no business in a sandbox, whoever asks.
const KERNEL_FILE_SYSTEMS: [libc::c_long; 11] = [
    libc::BPF_FS_MAGIC,
    libc::CGROUP2_SUPER_MAGIC,
    libc::CGROUP_SUPER_MAGIC,
    libc::DEBUGFS_MAGIC,
    libc::DEVPTS_SUPER_MAGIC,
    libc::NSFS_MAGIC,
    libc::PROC_SUPER_MAGIC,
    libc::SECURITYFS_MAGIC,
    libc::SELINUX_MAGIC,
    libc::SYSFS_MAGIC,
    libc::TRACEFS_MAGIC,
];

/// Where it cannot be asked, it is taken for one.
fn is_of_the_kernel(found: &OwnedFd) -> bool {
    fstatfs(found).map_or(true, |status| KERNEL_FILE_SYSTEMS.contains(&(status.f_type as libc::c_long)))
}

fn nested_below(found: &OwnedFd) -> Result<Option<PathBuf>, Failure> {
    let failed = |error: std::io::Error| Failure::new("WORKSPACE_REFUSED", format!("reading mounts: {error}"));
    let path = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).map_err(failed)?;
    nested_mount(&path).map_err(failed)
}

/// An ordinary user cannot look below what is mounted by others, so the kernel refuses to clone it.
fn clone_failure(source: &Source, found: &OwnedFd, errno: Errno) -> Failure {
    match (errno, nested_below(found)) {
        (Errno::INVAL, Ok(Some(nested))) => {
            refused(source, &format!("has another file system mounted at {}", nested.display()))
        }
        (Errno::NOSYS, _) => Failure::new("NO_DRIVER", "the kernel lacks open_tree (Linux 5.12 or newer is needed)"),
        _ => Failure::errno("WORKSPACE_REFUSED", format!("making a mount of {}", source.path), errno),
    }
}

fn refused(source: &Source, why: &str) -> Failure {
    Failure::new("WORKSPACE_REFUSED", format!("{} {why}", source.path))
}

/// A user namespace in which the owner on the host is the sandbox's user.
fn mapping_namespace(map: &OwnerMap) -> std::io::Result<OwnedFd> {
    let holder = NamespaceHolder::new()?;
    let directory = PathBuf::from(format!("/proc/{}", holder.pid()));
    fs::write(directory.join("uid_map"), format!("{} {} 1", map.host.0, map.sandbox.0))?;
    fs::write(directory.join("gid_map"), format!("{} {} 1", map.host.1, map.sandbox.1))?;
    Ok(fs::File::open(directory.join("ns/user"))?.into())
}
