//! What holds, in the words of the enforcement report.

use super::step::{SealError, Step};
use crate::proto::link::Hold;

/// A sentence; lists of paths are cut.
const DETAIL_CHARS: usize = 400;

#[derive(Default)]
pub struct Report {
    holds: Vec<Hold>,
}

impl Report {
    pub fn holds(&mut self, name: &str, by: &str, detail: impl Into<String>) {
        self.add(name, true, by, detail.into());
    }

    pub fn lacks(&mut self, name: &str, by: &str, why: impl Into<String>) {
        self.add(name, false, by, why.into());
    }

    /// What was said to hold does not after all.
    pub fn retract(&mut self, name: &str, by: &str, why: &str) {
        let before = self.holds.len();
        self.holds.retain(|hold| hold.name != name);
        if self.holds.len() < before {
            self.lacks(name, by, why);
        }
    }

    fn add(&mut self, name: &str, enforced: bool, by: &str, mut detail: String) {
        if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS) {
            detail.truncate(end);
            detail.push('…');
        }
        self.holds.push(Hold { name: name.into(), enforced, by: by.into(), detail });
    }

    /// Everything that was asked for by name must hold.
    pub fn require(&self, names: &[String]) -> Result<(), SealError> {
        for name in names {
            match self.holds.iter().find(|hold| hold.name == *name) {
                Some(hold) if hold.enforced => {}
                Some(hold) => {
                    return Err(Step::Check.error(format!("{name} is required and does not hold: {}", hold.detail)));
                }
                None => return Err(Step::Check.error(format!("{name} is required and unknown to the wall"))),
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Vec<Hold> {
        self.holds
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn what_is_required_must_hold() {
        let mut report = Report::default();
        report.holds("seccomp", "filter", "");
        report.lacks("landlock", "kernel", "absent");
        assert!(report.require(&["seccomp".into()]).is_ok());
        assert!(report.require(&["landlock".into()]).unwrap_err().message.contains("absent"));
        assert!(report.require(&["limit.luck".into()]).is_err());
    }
}
