//! What sealing promises, each tried on a sandbox of its own.

use std::{
    fs,
    os::unix::fs::chown,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use crate::{options, outside};

/// A directory on the host with a project, layers and a file, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("caisson-wall-{}-{name}", std::process::id()));
        for folder in ["project/sub", "layers"] {
            fs::create_dir_all(path.join(folder)).expect("a directory");
        }
        fs::write(path.join("project/file.txt"), "content\n").expect("a file");
        std::os::unix::fs::symlink("/etc", path.join("project/link")).expect("a link");
        if rustix::process::geteuid().is_root() {
            let owner = Some(outside::SANDBOX_UID);
            chown(path.join("layers"), owner, owner).expect("chown");
        }
        Place(path)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn overlay(&self) -> [String; 3] {
        ["--overlay".into(), format!("{}:/work/p", self.at("project")), self.at("layers")]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // An overlay's work directory is closed, also to its owner.
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.0).status();
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Outcome {
    code: i32,
    out: String,
    error: String,
}

/// Seals a sandbox with these options and runs a shell script in it.
fn run(arguments: &[&str], script: &str) -> Outcome {
    let mut all: Vec<String> = arguments.iter().map(|&argument| argument.into()).collect();
    all.extend(["--", "/bin/sh", "-c", script].map(String::from));
    let mut command = outside::command(&options::parse(&all), Stdio::null());
    let output = command.output().expect("bwrap starts");
    Outcome {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        error: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn everything_holds() {
    let place = Place::new("holds");
    let overlay = place.overlay();
    let mut arguments: Vec<&str> = overlay.iter().map(String::as_str).collect();
    let names = [
        "mounts.readonly_root",
        "sockets.host",
        "network.none",
        "descriptors",
        "userns_limit",
        "namespace.user",
        "namespace.pid",
        "namespace.ipc",
        "namespace.uts",
        "namespace.cgroup",
        "capabilities",
        "no_new_privs",
        "guest.undumpable",
        "landlock",
        "seccomp",
        "limit.tmpfs",
        "limit.files",
        "limit.pids",
        "limit.core",
    ];
    arguments.extend(names.iter().flat_map(|name| ["--require", name]));
    let outcome = run(&arguments, "true");
    assert_eq!(outcome.code, 0, "{}", outcome.error);
}

fn what_is_required_and_does_not_hold_ends_the_sandbox() {
    assert_eq!(run(&["--require", "limit.file_size"], "true").code, 80);
    assert_eq!(run(&["--require", "no.such.thing"], "true").code, 80);
}

fn a_directory_that_is_not_the_one_meant_is_refused() {
    let place = Place::new("meant");
    let outcome = run(&["--another-inode", "--ro-bind", &format!("{}:/opt/x", place.at("project"))], "true");
    assert_eq!(outcome.code, 71, "{}", outcome.error);
    assert!(outcome.error.contains("/opt/x"), "{}", outcome.error);
}

fn mount_points_are_made_on_the_sandboxs_own_ground_only() {
    let place = Place::new("ground");
    let overlay = place.overlay();
    let overlay: Vec<&str> = overlay.iter().map(String::as_str).collect();
    for target in ["/usr/nowhere/x", "/work/p/new", "/work/p/link/x", "/work/p/link"] {
        let bind = format!("{}:{target}", place.at("project/sub"));
        let outcome = run(&[&overlay[..], &["--ro-bind", &bind]].concat(), "true");
        assert_eq!(outcome.code, 71, "{target}: {}", outcome.error);
    }
    let inside = format!("{}:/work/p/sub", place.at("project"));
    let outcome = run(&[&overlay[..], &["--ro-bind", &inside]].concat(), "cat /work/p/sub/file.txt");
    assert_eq!(outcome.out, "content\n", "{}", outcome.error);
    assert!(!place.0.join("project/new").exists());
}

fn a_single_file_can_be_mounted() {
    let place = Place::new("file");
    let bind = format!("{}:/opt/tool/file", place.at("project/file.txt"));
    let read_only = run(&["--ro-bind", &bind], "cat /opt/tool/file; echo x > /opt/tool/file");
    assert_eq!((read_only.out.as_str(), read_only.code), ("content\n", 2), "{}", read_only.error);
}

fn a_writable_bind_reaches_the_host_and_is_reported() {
    let place = Place::new("bind");
    if rustix::process::geteuid().is_root() {
        // The owner is mapped: what the sandbox writes belongs to whom the directory belongs to.
        chown(place.0.join("project"), Some(4242), Some(4242)).expect("chown");
    }
    let bind = format!("{}:/work/p", place.at("project"));
    let outcome = run(&["--report", "--bind", &bind], "echo new > /work/p/new");
    assert_eq!(outcome.code, 0, "{}", outcome.error);
    assert!(outcome.error.contains("LACKS sockets.host"), "{}", outcome.error);
    let owner = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(place.0.join(name)).expect("metadata").uid()
    };
    assert_eq!(owner("project/new"), owner("project"));
}

fn writes_can_be_bounded_to_named_paths() {
    let place = Place::new("write");
    let overlay = place.overlay();
    let mut arguments: Vec<&str> = overlay.iter().map(String::as_str).collect();
    // The link would lead to /etc, and the last one is nowhere.
    arguments.extend(["--allow-write", "/work/p/sub", "--allow-write", "/work/p/link", "--allow-write", "/nowhere"]);
    arguments.push("--report");
    let script = "for f in /work/p/sub/x /work/p/x /tmp/x ~/x /work/p/link/x /dev/null; do
        (echo x > $f) 2>/dev/null && echo $f; done; rm /work/p/file.txt 2>/dev/null || echo kept";
    let outcome = run(&arguments, script);
    assert_eq!(outcome.out, "/work/p/sub/x\n/dev/null\nkept\n", "{}", outcome.error);
    assert!(outcome.error.contains("no file or directory was at /work/p/link, /nowhere"), "{}", outcome.error);
}

fn a_kernel_without_landlock_is_reported_and_enough_only_if_nobody_asks_for_more() {
    let outcome = run(&["--no-landlock", "--report"], "(echo x > /etc/x) 2>/dev/null || echo refused");
    assert_eq!(outcome.out, "refused\n", "{}", outcome.error);
    assert!(outcome.error.contains("LACKS landlock"), "{}", outcome.error);
    assert_eq!(run(&["--no-landlock", "--require", "landlock"], "true").code, 80);
    assert_eq!(run(&["--no-landlock", "--allow-write", "/tmp", "--require", "paths.allow_write"], "true").code, 80);
}

fn the_world_inside_is_sane() {
    let script = "id -u; id -un; hostname; umask; echo ~; getent hosts box; stat -c %a /tmp /var/tmp /dev/shm; pwd;
        cat /proc/self/oom_score_adj; ip -4 -o addr show | wc -l; wc -c < /etc/machine-id";
    let outcome = run(&[], script);
    let expected =
        "1000\ndev\nbox\n0022\n/home/dev\n127.0.0.1       localhost box\n1777\n1777\n1777\n/home/dev\n500\n2\n33\n";
    assert_eq!(outcome.out, expected, "{}", outcome.error);
    let ids = [run(&[], "cat /etc/machine-id").out, run(&[], "cat /etc/machine-id").out];
    assert_ne!(ids[0], ids[1]);
}

fn nested_and_debug_open_what_they_say() {
    let script = "unshare --user --map-root-user id -u; unshare --user --mount true 2>/dev/null || echo no mounts";
    assert_eq!(run(&["--group", "nested"], script).out, "0\nno mounts\n");
    let outcome = run(&["--group", "debug"], "cat /proc/self/comm; unshare --user true 2>/dev/null || echo refused");
    assert_eq!(outcome.out, "cat\nrefused\n", "{}", outcome.error);
}

fn bad_seals_are_refused_before_anything_is_touched() {
    assert_eq!(run(&["--group", "everything"], "true").code, 70);
    assert_eq!(run(&["--workdir", "relative"], "true").code, 70);
    assert_eq!(run(&["--workdir", "/a/../b"], "true").code, 70);
}

fn layers_survive_and_are_used_again() {
    let place = Place::new("layers");
    let overlay = place.overlay();
    let arguments: Vec<&str> = overlay.iter().map(String::as_str).collect();
    let first = run(&arguments, "echo more >> /work/p/file.txt; rm /work/p/link; mkdir /work/p/made");
    assert_eq!(first.code, 0, "{}", first.error);
    let second = run(&arguments, "cat /work/p/file.txt; ls /work/p");
    assert_eq!(second.out, "content\nmore\nfile.txt\nmade\nsub\n", "{}", second.error);
    assert_eq!(fs::read_to_string(place.0.join("project/file.txt")).expect("the file"), "content\n");
}

/// Each function beside its name.
macro_rules! cases {
    ($($case:ident),* $(,)?) => { [$((stringify!($case), $case as fn())),*] };
}

pub fn main(filters: &[String]) -> ExitCode {
    let cases = cases![
        everything_holds,
        what_is_required_and_does_not_hold_ends_the_sandbox,
        a_directory_that_is_not_the_one_meant_is_refused,
        mount_points_are_made_on_the_sandboxs_own_ground_only,
        a_single_file_can_be_mounted,
        a_writable_bind_reaches_the_host_and_is_reported,
        writes_can_be_bounded_to_named_paths,
        a_kernel_without_landlock_is_reported_and_enough_only_if_nobody_asks_for_more,
        the_world_inside_is_sane,
        nested_and_debug_open_what_they_say,
        bad_seals_are_refused_before_anything_is_touched,
        layers_survive_and_are_used_again,
    ];
    let wanted: Vec<&String> = filters.iter().filter(|filter| !filter.starts_with('-')).collect();
    let mut failed = 0;
    for (name, case) in cases {
        if !wanted.is_empty() && !wanted.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        match std::panic::catch_unwind(case) {
            Ok(()) => println!("test {name} ... ok"),
            Err(_) => {
                println!("test {name} ... FAILED");
                failed += 1;
            }
        }
    }
    ExitCode::from(u8::from(failed > 0))
}
