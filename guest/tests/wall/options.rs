//! The command line of `run`.

use crate::proto::link::{Rlimits, Seal};

pub enum Source {
    Bind { from: String, read_only: bool },
    Overlay { project: String, layers: String },
}

#[derive(Default)]
pub struct Options {
    /// Each with the path it goes to.
    pub sources: Vec<(String, Source)>,
    pub seal: Seal,
    pub command: Vec<String>,
    /// Print what holds, and how long sealing took, to standard error.
    pub report: bool,
    /// Announce another inode than the one that is handed in.
    pub another_inode: bool,
    /// As on a kernel without Landlock.
    pub no_landlock: bool,
}

pub fn parse(arguments: &[String]) -> Options {
    let mut options = Options {
        seal: Seal {
            hostname: "box".into(),
            uid: 1000,
            gid: 1000,
            user: "dev".into(),
            home: "/home/dev".into(),
            workdir: "/home/dev".into(),
            tmpfs_bytes: 256 << 20,
            tmpfs_inodes: 100_000,
            rlimits: Some(Rlimits { open_files: 1024, processes: 256, file_size: 0 }),
            ..Seal::default()
        },
        ..Options::default()
    };
    let mut rest = arguments.iter();
    let seal = &mut options.seal;
    while let Some(name) = rest.next() {
        let mut value = || rest.next().unwrap_or_else(|| panic!("{name} wants a value")).clone();
        match name.as_str() {
            "--" => {
                options.command = rest.cloned().collect();
                return options;
            }
            "--report" => options.report = true,
            "--no-landlock" => options.no_landlock = true,
            "--another-inode" => options.another_inode = true,
            "--group" => seal.syscalls.push(value()),
            "--deny-read" => seal.deny_read.push(value()),
            "--allow-write" => seal.allow_write.push(value()),
            "--require" => seal.required.push(value()),
            "--workdir" => seal.workdir = value(),
            "--tmpfs-bytes" => seal.tmpfs_bytes = value().parse().expect("a number"),
            "--processes" => seal.rlimits.get_or_insert_default().processes = value().parse().expect("a number"),
            "--bind" | "--ro-bind" => {
                let (from, to) = pair(&value());
                options.sources.push((to, Source::Bind { from, read_only: name == "--ro-bind" }));
            }
            "--overlay" => {
                let (project, to) = pair(&value());
                options.sources.push((to, Source::Overlay { project, layers: value() }));
            }
            other => panic!("unknown option {other}"),
        }
    }
    options
}

/// `FROM:TO`
fn pair(value: &str) -> (String, String) {
    let (from, to) = value.split_once(':').unwrap_or((value, value));
    (from.into(), to.into())
}
