//! What `Seal` asks for, checked before anything is touched.

use std::os::fd::OwnedFd;

use super::step::{SealError, Step};
use crate::{
    proto::link::{Mount, Seal, mount::Kind},
    rules,
};

/// One thing to attach, with the descriptors that the broker sent for it.
pub enum Attachment {
    /// The root of an image.
    Root {
        tree: OwnedFd,
    },
    Bind {
        path: String,
        read_only: bool,
        is_file: bool,
        tree: OwnedFd,
    },
    Overlay {
        path: String,
        lower: OwnedFd,
        layers: OwnedFd,
    },
    /// An empty directory of the sandbox's own; nothing came for it.
    Private {
        path: String,
    },
}

impl Attachment {
    pub fn path(&self) -> &str {
        match self {
            Attachment::Root { .. } => "/",
            Attachment::Bind { path, .. } | Attachment::Overlay { path, .. } | Attachment::Private { path } => path,
        }
    }
}

/// Syscall groups beyond the base list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Tracing other processes.
    pub debug: bool,
    /// User namespaces and what lives in them.
    pub nested: bool,
}

impl Groups {
    fn read(names: &[String]) -> Result<Self, SealError> {
        let mut groups = Groups::default();
        for name in names {
            match name.as_str() {
                "debug" => groups.debug = true,
                "nested" => groups.nested = true,
                other => return Err(Step::Usage.error(format!("unknown syscall group {other}"))),
            }
        }
        Ok(groups)
    }
}

pub struct Plan<'a> {
    pub seal: &'a Seal,
    /// Parents before what is mounted inside them.
    pub attachments: Vec<Attachment>,
    pub groups: Groups,
}

impl Plan<'_> {
    /// Closes what was attached: the tree holds it now.
    pub fn without_descriptors(self) -> Self {
        Plan { attachments: Vec::new(), ..self }
    }
}

/// What can be said about a seal without its mounts.
pub fn check(seal: &Seal) -> Result<(), SealError> {
    if seal.uid == 0 || seal.gid == 0 || seal.uid == u32::MAX || seal.gid == u32::MAX {
        return Err(Step::Identity.error("commands run as a user and a group other than 0"));
    }
    check_name(&seal.user, "user")?;
    check_hostname(&seal.hostname)?;
    if seal.home.contains(':') {
        return Err(Step::Usage.error("the home directory cannot stand in /etc/passwd"));
    }
    for path in [&seal.home, &seal.workdir].into_iter().chain(&seal.deny_read).chain(&seal.allow_write) {
        check_path(path)?;
    }
    for name in seal.etc.keys() {
        check_name(name, "file")?;
    }
    Groups::read(&seal.syscalls).map(drop)
}

pub fn read(seal: &Seal, descriptors: Vec<OwnedFd>) -> Result<Plan<'_>, SealError> {
    check(seal)?;
    let groups = Groups::read(&seal.syscalls)?;
    let (private, handed_in): (Vec<&Mount>, Vec<&Mount>) =
        seal.mounts.iter().partition(|mount| mount.kind() == Kind::Private);
    if descriptors.len() != handed_in.len() {
        let (count, want) = (descriptors.len(), handed_in.len());
        return Err(Step::Mounts.error(format!("{count} mounts came where {want} were announced")));
    }
    let mut attachments = pair(&handed_in, descriptors)?;
    for mount in private {
        check_path(&mount.path)?;
        attachments.push(Attachment::Private { path: mount.path.clone() });
    }
    attachments.sort_by_key(|attachment| depth(attachment.path()));
    Ok(Plan { seal, attachments, groups })
}

/// Checks each descriptor against what the daemon meant and joins lower layers with upper ones.
fn pair(mounts: &[&Mount], descriptors: Vec<OwnedFd>) -> Result<Vec<Attachment>, SealError> {
    let mut attachments = Vec::with_capacity(mounts.len());
    let mut lower: Option<(&str, OwnedFd)> = None;
    for (&mount, tree) in mounts.iter().zip(descriptors) {
        check_path(&mount.path)?;
        check_identity(mount, &tree)?;
        let path = mount.path.clone();
        match (Kind::try_from(mount.kind), lower.take()) {
            (Ok(Kind::Root), None) if attachments.is_empty() && path == "/" && !mount.is_file => {
                attachments.push(Attachment::Root { tree });
            }
            (Ok(Kind::Bind), None) => {
                attachments.push(Attachment::Bind { path, read_only: mount.read_only, is_file: mount.is_file, tree });
            }
            (Ok(Kind::Lower), None) if !mount.is_file => lower = Some((&mount.path, tree)),
            (Ok(Kind::Upper), Some((lower_path, lower))) if lower_path == mount.path && !mount.is_file => {
                attachments.push(Attachment::Overlay { path, lower, layers: tree });
            }
            _ => return Err(Step::Mounts.error(format!("{path}: a lower layer is followed by its upper one"))),
        }
    }
    match lower {
        Some((path, _)) => Err(Step::Mounts.error(format!("{path}: the overlay has no upper layer"))),
        None => Ok(attachments),
    }
}

fn check_identity(mount: &Mount, tree: &OwnedFd) -> Result<(), SealError> {
    let path = &mount.path;
    let stat = rustix::fs::fstat(tree).map_err(|errno| Step::Mounts.error(format!("{path}: {errno}")))?;
    if (stat.st_dev, stat.st_ino) != (mount.device, mount.inode) {
        return Err(Step::Mounts.error(format!("{path}: what came is not the directory that was meant")));
    }
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    let fits = if mount.is_file { kind.is_file() } else { kind.is_dir() };
    if !fits {
        return Err(Step::Mounts.error(format!("{path}: only directories and regular files are mounted, not {kind:?}")));
    }
    Ok(())
}

fn depth(path: &str) -> usize {
    path.split('/').filter(|part| !part.is_empty()).count()
}

/// Absolute, without `.` and `..`, of bounded length.
fn check_path(path: &str) -> Result<(), SealError> {
    let parts_fit = path.split('/').skip(1).all(|part| {
        !matches!(part, "." | "..") && part.len() <= rules::PATH_MAX_SEGMENT_BYTES && !part.contains(char::is_control)
    });
    if !path.starts_with('/') || path.len() > rules::PATH_MAX_BYTES || !parts_fit {
        return Err(Step::Usage.error(format!("{path:?} is not an absolute, plain path")));
    }
    Ok(())
}

/// A name that cannot break a line of /etc/passwd.
fn check_name(name: &str, what: &str) -> Result<(), SealError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 32 || !name.chars().all(fits) {
        return Err(Step::Usage.error(format!("{name:?} is no {what} name")));
    }
    Ok(())
}

fn check_hostname(name: &str) -> Result<(), SealError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if name.is_empty() || name.len() > 63 || !name.chars().all(fits) {
        return Err(Step::Usage.error(format!("{name:?} is no host name")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal() -> Seal {
        Seal {
            uid: 1000,
            gid: 1000,
            user: "dev".into(),
            hostname: "box".into(),
            home: "/home/dev".into(),
            workdir: "/home/dev".into(),
            ..Seal::default()
        }
    }

    fn opened(path: &str) -> (OwnedFd, u64, u64) {
        let fd: OwnedFd = std::fs::File::open(path).unwrap().into();
        let stat = rustix::fs::fstat(&fd).unwrap();
        (fd, stat.st_dev, stat.st_ino)
    }

    #[test]
    fn root_is_never_the_user() {
        assert_eq!(read(&Seal { uid: 0, ..seal() }, vec![]).err().unwrap().step, 75);
        assert_eq!(read(&Seal { gid: 0, ..seal() }, vec![]).err().unwrap().step, 75);
    }

    #[test]
    fn names_and_paths_that_could_break_out_of_their_line_are_refused() {
        for user in ["", "a:b", "a\nroot", &"x".repeat(33)] {
            assert!(read(&Seal { user: user.into(), ..seal() }, vec![]).is_err());
        }
        for home in ["home", "", "/a/../b", "/a/./b", "/a\nb"] {
            assert!(read(&Seal { home: home.into(), ..seal() }, vec![]).is_err());
        }
        assert!(read(&Seal { hostname: "a b".into(), ..seal() }, vec![]).is_err());
        assert!(read(&Seal { syscalls: vec!["everything".into()], ..seal() }, vec![]).is_err());
    }

    #[test]
    fn a_directory_that_is_not_the_one_meant_is_refused() {
        let (fd, device, inode) = opened("/usr");
        let mount = |inode| Mount { kind: Kind::Bind as i32, path: "/x".into(), device, inode, ..Mount::default() };
        let wanted = Seal { mounts: vec![mount(inode + 1)], ..seal() };
        assert_eq!(read(&wanted, vec![fd.try_clone().unwrap()]).err().unwrap().step, 71);
        let wanted = Seal { mounts: vec![mount(inode)], ..seal() };
        assert!(read(&wanted, vec![fd]).is_ok());
        assert_eq!(read(&wanted, vec![]).err().unwrap().step, 71);
    }

    #[test]
    fn devices_and_sockets_are_never_mounted() {
        let (fd, device, inode) = opened("/dev/null");
        for is_file in [true, false] {
            let mount = Mount { kind: Kind::Bind as i32, path: "/x".into(), device, inode, is_file, read_only: true };
            let wanted = Seal { mounts: vec![mount], ..seal() };
            assert!(read(&wanted, vec![fd.try_clone().unwrap()]).is_err());
        }
    }

    #[test]
    fn layers_come_in_pairs_and_parents_come_first() {
        let mount = |kind: Kind, path: &str, device, inode| Mount {
            kind: kind as i32,
            path: path.into(),
            device,
            inode,
            ..Mount::default()
        };
        let (fd, device, inode) = opened("/usr");
        let again = || fd.try_clone().unwrap();
        let lower = mount(Kind::Lower, "/p", device, inode);
        let upper = mount(Kind::Upper, "/p", device, inode);
        let other = mount(Kind::Upper, "/q", device, inode);
        assert!(read(&Seal { mounts: vec![lower.clone()], ..seal() }, vec![again()]).is_err());
        assert!(read(&Seal { mounts: vec![upper.clone()], ..seal() }, vec![again()]).is_err());
        assert!(read(&Seal { mounts: vec![lower.clone(), other], ..seal() }, vec![again(), again()]).is_err());
        let bind = mount(Kind::Bind, "/p/cache/x", device, inode);
        let wanted = Seal { mounts: vec![bind, lower, upper], ..seal() };
        let plan = read(&wanted, vec![again(), again(), again()]).unwrap();
        let paths: Vec<_> = plan.attachments.iter().map(Attachment::path).collect();
        assert_eq!(paths, ["/p", "/p/cache/x"]);
    }
}
