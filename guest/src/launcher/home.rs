//! Where the daemon's data lives, and whether it is really ours.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use super::trouble::Trouble;

/// The data directory; `run` below it is where daemon and launcher meet.
pub struct Home {
    pub path: PathBuf,
}

impl Home {
    pub fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    pub fn socket(&self) -> PathBuf {
        self.path.join("run/daemon.sock")
    }

    pub fn log(&self) -> PathBuf {
        self.path.join("daemon.log")
    }

    /// Makes the directories that a first start needs, closed to others.
    pub fn create(&self) -> Result<(), Trouble> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(self.run()).map_err(|error| {
            Trouble::new(
                format!("cannot make the data directory {}: {error}", self.path.display()),
                "Set CAISSON_HOME to a directory that you may write.",
            )
        })?;
        self.check()
    }

    /// Refuses directories in which somebody else could have put the socket.
    pub fn check(&self) -> Result<(), Trouble> {
        for path in [self.path.clone(), self.run()] {
            let meta = match fs::metadata(&path) {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => {
                    return Err(Trouble::new(
                        format!("cannot look at {}: {error}", path.display()),
                        "Set CAISSON_HOME to a directory of your own.",
                    ));
                }
            };
            if !is_ours(meta.uid()) {
                return Err(Trouble::new(
                    format!("{} belongs to another user (uid {})", path.display(), meta.uid()),
                    "Set CAISSON_HOME to a directory of your own, or run as its owner.",
                ));
            }
            if meta.mode() & 0o022 != 0 {
                return Err(Trouble::new(
                    format!("{} can be written by others", path.display()),
                    format!("Close it: chmod go-w {}", path.display()),
                ));
            }
        }
        Ok(())
    }
}

/// Files and peers are trusted if they are ours or root's.
pub fn is_ours(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

pub fn find() -> Result<Home, Trouble> {
    let path = choose(
        env::var_os("CAISSON_HOME").as_deref(),
        rustix::process::geteuid().is_root(),
        env::var_os("XDG_DATA_HOME").as_deref(),
        || env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from).or_else(home_from_passwd),
    )
    .ok_or_else(|| Trouble::new("there is no home directory to keep data in", "Set CAISSON_HOME."))?;
    // The daemon runs in another directory, so a relative path would mean another place to it.
    let path = if path.is_absolute() {
        path
    } else {
        env::current_dir().map(|cwd| cwd.join(&path)).map_err(|error| {
            Trouble::new(format!("cannot tell what CAISSON_HOME is relative to: {error}"), "Make it an absolute path.")
        })?
    };
    Ok(Home { path })
}

fn choose(
    caisson_home: Option<&OsStr>,
    is_root: bool,
    xdg_data_home: Option<&OsStr>,
    user_home: impl FnOnce() -> Option<PathBuf>,
) -> Option<PathBuf> {
    if let Some(home) = caisson_home.filter(|home| !home.is_empty()) {
        return Some(home.into());
    }
    if is_root {
        return Some("/var/lib/caisson".into());
    }
    // The XDG rules: a relative value is invalid and ignored.
    if let Some(data) = xdg_data_home.map(Path::new).filter(|data| data.is_absolute()) {
        return Some(data.join("caisson"));
    }
    user_home().map(|home| home.join(".local/share/caisson"))
}

/// A static binary has no name service; the file itself says enough.
fn home_from_passwd() -> Option<PathBuf> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = fs::read("/etc/passwd").ok()?;
    passwd.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let matches = fields.len() >= 6 && fields[2] == uid.as_bytes() && fields[5].starts_with(b"/");
        matches.then(|| PathBuf::from(OsStr::from_bytes(fields[5])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(caisson: &str, root: bool, xdg: &str, home: &str) -> Option<String> {
        let path = choose(Some(caisson.as_ref()), root, Some(xdg.as_ref()), || {
            (!home.is_empty()).then(|| PathBuf::from(home))
        });
        path.map(|path| path.to_string_lossy().into_owned())
    }

    #[test]
    fn the_data_directory_is_named_root_s_or_the_user_s() {
        assert_eq!(chosen("/x", true, "/d", "/h").unwrap(), "/x");
        assert_eq!(chosen("", true, "/d", "/h").unwrap(), "/var/lib/caisson");
        assert_eq!(chosen("", false, "/d", "/h").unwrap(), "/d/caisson");
        assert_eq!(chosen("", false, "relative", "/h").unwrap(), "/h/.local/share/caisson");
        assert_eq!(chosen("", false, "", ""), None);
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let path = env::temp_dir().join(format!("caisson-home-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Home { path: path.clone() }.check().unwrap_err();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let allowed = Home { path: path.clone() }.check();
        fs::remove_dir(&path).unwrap();
        assert!(refused.message().contains("written by others"));
        assert!(allowed.is_ok());
    }
}
