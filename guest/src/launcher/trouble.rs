//! What goes wrong before or around the daemon's own words.

use std::{fmt::Display, io::Write};

/// A message for people and what they can do next.
#[derive(Debug)]
pub struct Trouble {
    message: String,
    next: String,
}

impl Trouble {
    pub fn new(message: impl Display, next: impl Display) -> Self {
        Self { message: message.to_string(), next: next.to_string() }
    }

    /// Prints it; nobody may be listening, and that is no further trouble.
    pub fn print(&self) {
        let text = if self.next.is_empty() {
            format!("caisson: {}\n", self.message)
        } else {
            format!("caisson: {}\n  {}\n", self.message, self.next)
        };
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    #[cfg(test)]
    pub fn message(&self) -> &str {
        &self.message
    }
}
