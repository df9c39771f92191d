//! The launcher as people meet it, against a daemon made for the test.

#[path = "../../src/gen/caisson.terminal.v1.rs"]
#[allow(dead_code, clippy::all)]
mod terminal;

mod conversation;
mod server;
mod starting;
mod streams;
mod tty;

use std::{
    env,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use server::Call;

/// A data directory that goes away with the test.
pub struct TestHome(pub PathBuf);

#[allow(clippy::new_without_default)]
impl TestHome {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("caisson-launcher-{}-{number}", std::process::id()));
        std::fs::create_dir_all(path.join("run")).unwrap();
        Self(path)
    }

    /// Serves calls, one after the other, on a thread; each is given to `serve`.
    pub fn serve(&self, mut serve: impl FnMut(Call) + Send + 'static) {
        let listener = server::listen(&self.0);
        thread::spawn(move || {
            loop {
                if let Some(call) = server::accept(&listener) {
                    serve(call);
                }
            }
        });
    }

    pub fn launcher(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caisson-guest"));
        command.arg("launch").env_remove("CAISSON_URL").env("CAISSON_HOME", &self.0).stdin(Stdio::null());
        command
    }
}

impl Drop for TestHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn said(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
