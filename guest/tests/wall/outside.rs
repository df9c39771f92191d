//! What keeper and driver do, in the smallest form: mounts as descriptors, then bubblewrap.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            fs::{MetadataExt, PermissionsExt},
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::OnceLock,
};

use prost::Message;
use rustix::{
    mount::{OpenTreeFlags, open_tree},
    process::{Pid, PidfdFlags, PidfdGetfdFlags},
    thread::UnshareFlags,
};

use crate::{
    options::{Options, Source},
    proto::link::{Mount, mount::Kind},
};

/// The uid that sandboxes of root get.
pub const SANDBOX_UID: u32 = 59_001;

pub fn run(options: &Options) -> ExitCode {
    let status = command(options, Stdio::inherit()).status().expect("bwrap starts");
    ExitCode::from(status.code().unwrap_or(128 + status.signal().unwrap_or(0)) as u8)
}

/// A bubblewrap command that starts this program inside and seals it as the options say.
pub fn command(options: &Options, stdin: Stdio) -> Command {
    let root = rustix::process::geteuid().is_root();
    let mut seal = options.seal.clone();
    let mut trees = Vec::new();
    for (path, source) in &options.sources {
        let parts: Vec<(Kind, &str, bool)> = match source {
            Source::Bind { from, read_only } => vec![(Kind::Bind, from, *read_only)],
            Source::Overlay { project, layers } => vec![(Kind::Lower, project, true), (Kind::Upper, layers, false)],
        };
        for (kind, from, read_only) in parts {
            let tree = if root { tree_of_root(from) } else { tree_of_user(from) };
            let stat = rustix::fs::fstat(&tree).expect("fstat");
            let is_file = Path::new(from).is_file();
            let (device, inode) = (stat.st_dev, stat.st_ino + u64::from(options.another_inode));
            seal.mounts.push(Mount { kind: kind as i32, path: path.clone(), read_only, device, inode, is_file });
            trees.push(tree);
        }
    }
    let hex: String = seal.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
    let first = 40;
    let mut command = Command::new("bwrap");
    command.args(bwrap_arguments()).env_clear().env("PATH", "/usr/bin:/bin").stdin(stdin);
    let flags = [options.report, options.no_landlock].map(|flag| flag.to_string());
    command.args(["/.caisson-guest", "inside", &hex, &flags[0], &flags[1], &first.to_string(), "--"]);
    command.args(&options.command);
    // SAFETY: only system calls on descriptors that live as long as the closure.
    unsafe {
        command.pre_exec(move || {
            for (index, tree) in trees.iter().enumerate() {
                if libc::dup2(tree.as_raw_fd(), first + index as i32) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            if root
                && (libc::setgroups(0, std::ptr::null()) < 0
                    || libc::setresgid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0
                    || libc::setresuid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0)
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command
}

/// This program, where every user can read it: the checkout may lie below somebody's closed home.
fn readable_program() -> PathBuf {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("caisson-wall-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for the program");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("its mode");
        let copy = directory.join("wall");
        fs::copy(std::env::current_exe().expect("this program's path"), &copy).expect("a copy of the program");
        copy
    })
    .clone()
}

/// Removes the copy of this program.
pub fn clean_up() {
    let _ = fs::remove_dir_all(std::env::temp_dir().join(format!("caisson-wall-{}", std::process::id())));
}

fn bwrap_arguments() -> Vec<String> {
    let program = readable_program();
    let mut text = String::from(
        "--unshare-user --uid 0 --gid 0 --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try \
         --as-pid-1 --cap-add ALL --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin \
         --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --tmpfs /home \
         --tmpfs /run --tmpfs /dev/shm --tmpfs /var/tmp --clearenv",
    );
    for entry in ["alternatives", "ssl", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "java-17-openjdk"] {
        if Path::new("/etc").join(entry).exists() {
            text.push_str(&format!(" --ro-bind /etc/{entry} /etc/{entry}"));
        }
    }
    let mut arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    arguments.extend(["--ro-bind".into(), program.display().to_string(), "/.caisson-guest".into()]);
    arguments
}

fn clone_tree(path: &str) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(rustix::fs::CWD, path, flags)?)
}

/// Root's: the owner of the directory appears as the sandbox's uid.
fn tree_of_root(path: &str) -> OwnedFd {
    let tree = clone_tree(path).expect("open_tree");
    let owner = fs::metadata(path).expect("metadata").uid();
    let mut holder = holder(UnshareFlags::NEWUSER);
    let pid = holder.id();
    for file in ["uid_map", "gid_map"] {
        fs::write(format!("/proc/{pid}/{file}"), format!("{owner} {SANDBOX_UID} 1")).expect("a map");
    }
    let namespace = File::open(format!("/proc/{pid}/ns/user")).expect("the namespace");
    let attributes = [0x0010_0000u64, 0, libc::MS_PRIVATE, namespace.as_raw_fd() as u64];
    // SAFETY: an empty C string, and four words as struct mount_attr wants them.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, tree.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, &attributes, 32)
    };
    assert_eq!(result, 0, "an idmapped mount of {path}: {}", io::Error::last_os_error());
    end(&mut holder);
    tree
}

/// An ordinary user's: made in a user and mount namespace of its own.
fn tree_of_user(path: &str) -> OwnedFd {
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    let owned = path.to_owned();
    let mut command = Command::new("/bin/cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    // SAFETY: the child has one thread; it opens one descriptor at a fixed number and says so.
    unsafe {
        command.pre_exec(move || {
            rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
            let tree = clone_tree(&owned)?;
            if libc::dup2(tree.as_raw_fd(), 50) < 0 {
                return Err(io::Error::last_os_error());
            }
            rustix::io::write(&write, b"x")?;
            Ok(())
        });
    }
    let mut holder = command.spawn().expect("a holder");
    drop(command);
    File::from(read).read_exact(&mut [0]).expect("the holder is ready");
    let pidfd = rustix::process::pidfd_open(Pid::from_child(&holder), PidfdFlags::empty()).expect("pidfd");
    let tree = rustix::process::pidfd_getfd(pidfd, 50, PidfdGetfdFlags::empty()).expect("pidfd_getfd");
    end(&mut holder);
    tree
}

fn holder(flags: UnshareFlags) -> Child {
    let mut command = Command::new("/bin/cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    // SAFETY: the child has one thread and makes one call.
    unsafe { command.pre_exec(move || Ok(rustix::thread::unshare_unsafe(flags)?)) };
    command.spawn().expect("a holder")
}

fn end(holder: &mut Child) {
    drop(holder.stdin.take());
    holder.wait().expect("the holder ends");
}
