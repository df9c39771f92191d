//! Writes down, for `caisson-ctl info`, what a sandbox is and what holds.

use std::{fmt::Write, fs, io, os::unix::fs::symlink};

use crate::proto::link::{Description, Hold};

/// Holds this file and the programs that an agent may call.
pub const DIRECTORY: &str = "/run/caisson";

/// Called once, by PID 1 behind the wall: what is written lies on the sandbox's own memory.
pub fn write(description: Option<&Description>, holds: &[Hold]) -> io::Result<()> {
    let Some(description) = description else { return Ok(()) };
    fs::write(format!("{DIRECTORY}/info.json"), text(description, holds))?;
    fs::create_dir_all(format!("{DIRECTORY}/bin"))?;
    symlink("../guest", format!("{DIRECTORY}/bin/caisson-ctl"))
}

fn text(description: &Description, holds: &[Hold]) -> String {
    let mechanisms: Vec<String> = description
        .holds
        .iter()
        .chain(holds)
        .map(|Hold { name, enforced, by, detail }| {
            let state = if *enforced { "MECHANISM_STATE_ENFORCED" } else { "MECHANISM_STATE_NOT_ENFORCED" };
            object(&[("name", name), ("state", state), ("by", by), ("detail", detail)], "")
        })
        .collect();
    let Description { id, tier, driver, profile, .. } = description;
    let list = format!(r#","mechanisms":[{}]"#, mechanisms.join(","));
    let enforcement = object(&[("tier", tier), ("driver", driver), ("profile", profile)], &list);
    format!("{}\n", object(&[("id", id)], &format!(r#","enforcement":{enforcement}"#)))
}

fn object(fields: &[(&str, &str)], rest: &str) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{}", quoted(value))).collect();
    format!("{{{}{rest}}}", fields.join(","))
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_json_that_the_reader_takes() {
        let hold =
            |name: &str, enforced| Hold { name: name.into(), enforced, by: "a \"b\"".into(), detail: "c\n".into() };
        let description = Description { id: "sb_1".into(), holds: vec![hold("network", true)], ..Default::default() };
        let text = text(&description, &[hold("seccomp", false)]);
        let parsed = super::super::json::parse(&text).expect("valid");
        assert_eq!(parsed.text("id"), Some("sb_1"));
        let mechanisms = parsed.get("enforcement").and_then(|found| found.get("mechanisms")).expect("a list");
        let names: Vec<_> = mechanisms.items().iter().filter_map(|item| item.text("name")).collect();
        assert_eq!(names, ["network", "seccomp"]);
    }
}
