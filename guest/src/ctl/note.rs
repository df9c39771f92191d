//! Writes down, for `caisson-ctl info`, what a sandbox is and what holds.

use std::{
    fmt::Write,
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, symlink},
};

use crate::proto::link::{Description, Hold};

/// Holds this file and the programs that an agent may call.
pub const DIRECTORY: &str = "/run/caisson";

/// Called once, by PID 1 behind the wall: what is written lies on the sandbox's own memory. Gives the file, for `rename`.
pub fn write(description: &Description, holds: &[Hold]) -> io::Result<File> {
    let file = File::create(format!("{DIRECTORY}/info.json"))?;
    file.write_all_at(text(description, holds).as_bytes(), 0)?;
    fs::create_dir_all(format!("{DIRECTORY}/bin"))?;
    symlink("../guest", format!("{DIRECTORY}/bin/caisson-ctl"))?;
    Ok(file)
}

/// The same for a copy of the sandbox, which has an id of its own. Ids are equally long, so that it can be put over the other; no
/// command has run yet that could have changed the file.
pub fn rename(file: &File, before: &str, id: &str) -> io::Result<()> {
    if id.len() != before.len() || id.contains(['"', '\\']) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut start = String::new();
    fields(&mut start, &[("id", before)]);
    file.write_all_at(id.as_bytes(), (start.len() - 1 - before.len()) as u64)
}

/// One string from the first letter to the last: this is written while somebody waits for the sandbox.
fn text(description: &Description, holds: &[Hold]) -> String {
    let Description { id, tier, driver, profile, .. } = description;
    let mut out = String::with_capacity(8 * 1024);
    fields(&mut out, &[("id", id)]);
    out.push_str(r#","enforcement":"#);
    fields(&mut out, &[("tier", tier), ("driver", driver), ("profile", profile)]);
    out.push_str(r#","mechanisms":["#);
    for (index, Hold { name, enforced, by, detail }) in description.holds.iter().chain(holds).enumerate() {
        if index > 0 {
            out.push(',');
        }
        let state = if *enforced { "MECHANISM_STATE_ENFORCED" } else { "MECHANISM_STATE_NOT_ENFORCED" };
        fields(&mut out, &[("name", name), ("state", state), ("by", by), ("detail", detail)]);
        out.push('}');
    }
    out.push_str("]}}\n");
    out
}

/// An object up to its closing bracket.
fn fields(out: &mut String, fields: &[(&str, &str)]) {
    for (index, (name, value)) in fields.iter().enumerate() {
        out.push_str(if index == 0 { "{\"" } else { ",\"" });
        out.push_str(name);
        out.push_str("\":\"");
        escape(out, value);
        out.push('"');
    }
}

fn escape(out: &mut String, text: &str) {
    let special = |letter: char| matches!(letter, '"' | '\\') || letter.is_control();
    let mut rest = text;
    while let Some(at) = rest.find(special) {
        out.push_str(&rest[..at]);
        let letter = rest[at..].chars().next().unwrap_or_default();
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            _ => {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
        }
        rest = &rest[at + letter.len_utf8()..];
    }
    out.push_str(rest);
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
