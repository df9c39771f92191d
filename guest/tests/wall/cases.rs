use std::process::ExitCode;
pub fn main(_: &[String]) -> ExitCode {
    ExitCode::SUCCESS
}
