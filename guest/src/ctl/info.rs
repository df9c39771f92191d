//! What this sandbox is and what really holds, as the daemon has written it down.

use std::{fs, io::Write, process::ExitCode};

use super::json::{self, Value};

/// Written by the daemon when the sandbox is sealed; read-only inside. Its fields are `id` and `enforcement`,
/// the latter as in the public contract.
const PATH: &str = "/run/caisson/info.json";

pub fn print(as_json: bool) -> ExitCode {
    let text = match fs::read_to_string(PATH) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("caisson-ctl: this does not look like a Caisson sandbox: {PATH}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let Some(info) = json::parse(&text) else {
        eprintln!("caisson-ctl: {PATH} is not what the daemon writes");
        return ExitCode::FAILURE;
    };
    let shown = if as_json { format!("{}\n", text.trim_end()) } else { describe(&info) };
    // Nobody may be reading.
    let _ = std::io::stdout().write_all(shown.as_bytes());
    ExitCode::SUCCESS
}

fn describe(info: &Value) -> String {
    let enforcement = info.get("enforcement");
    let field = |name: &str| enforcement.and_then(|found| found.text(name)).unwrap_or("unknown");
    let mut out = String::new();
    for (name, value) in [
        ("sandbox", info.text("id").unwrap_or("unknown")),
        ("tier", field("tier")),
        ("driver", field("driver")),
        ("profile", field("profile")),
    ] {
        out += &format!("{name:<9}{}\n", printable(value));
    }
    let mechanisms = enforcement.and_then(|found| found.get("mechanisms")).map(Value::items).unwrap_or_default();
    let width = mechanisms.iter().filter_map(|mechanism| mechanism.text("name")).map(str::len).max().unwrap_or(0);
    for mechanism in mechanisms {
        let of = |name: &str| printable(mechanism.text(name).unwrap_or_default());
        let state = of("state").to_lowercase().replace("mechanism_state_", "").replace('_', " ");
        let line = format!("  {:<width$}  {state:<12}  {}  {}", of("name"), of("by"), of("detail"));
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_told_line_by_line() {
        let info = r#"{"id":"sb1","enforcement":{"tier":"container","driver":"bubblewrap","profile":"moderate","mechanisms":[
            {"name":"seccomp","state":"MECHANISM_STATE_ENFORCED","by":"filter"},
            {"name":"limit.memory","state":"MECHANISM_STATE_NOT_ENFORCED","detail":"no cgroup is \u001b[31mwritable"}]}}"#;
        let told = describe(&json::parse(info).unwrap());
        let expected = "sandbox  sb1\ntier     container\ndriver   bubblewrap\nprofile  moderate\n  \
            seccomp       enforced      filter\n  limit.memory  not enforced    no cgroup is [31mwritable\n";
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_missing_is_said_to_be_unknown() {
        assert!(describe(&json::parse("{}").unwrap()).starts_with("sandbox  unknown\n"));
    }
}
