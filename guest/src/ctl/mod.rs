use std::{ffi::OsString, process::ExitCode};

pub fn main(_args: &[OsString]) -> ExitCode {
    ExitCode::from(70)
}
