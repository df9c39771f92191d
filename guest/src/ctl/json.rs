//! Just enough JSON to read one small file.

use std::{iter::Peekable, str::Chars};

const MAX_DEPTH: u32 = 32;

#[derive(Debug, PartialEq)]
pub enum Value {
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
    /// A number, true, false or null, as it was written.
    Word(String),
}

impl Value {
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Self::Text(text) | Self::Word(text) => Some(text),
            _ => None,
        }
    }

    pub fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }
}

pub fn parse(text: &str) -> Option<Value> {
    let mut letters = text.chars().peekable();
    let value = value(&mut letters, MAX_DEPTH)?;
    skip(&mut letters);
    letters.next().is_none().then_some(value)
}

fn value(letters: &mut Peekable<Chars<'_>>, depth: u32) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    skip(letters);
    match letters.peek()? {
        '"' => text(letters).map(Value::Text),
        '[' => series(letters, ']', |letters| value(letters, depth)).map(Value::List),
        '{' => {
            let field = |letters: &mut Peekable<Chars<'_>>| {
                let name = text(letters)?;
                skip(letters);
                (letters.next()? == ':').then_some(())?;
                Some((name, value(letters, depth)?))
            };
            series(letters, '}', field).map(Value::Object)
        }
        _ => {
            let mut word = String::new();
            while let Some(letter) = letters.next_if(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(*letter))
            {
                word.push(letter);
            }
            (!word.is_empty()).then_some(Value::Word(word))
        }
    }
}

/// What stands between brackets, separated by commas.
fn series<T>(
    letters: &mut Peekable<Chars<'_>>,
    end: char,
    item: impl Fn(&mut Peekable<Chars<'_>>) -> Option<T>,
) -> Option<Vec<T>> {
    letters.next();
    skip(letters);
    let mut items = Vec::new();
    if letters.next_if_eq(&end).is_some() {
        return Some(items);
    }
    loop {
        skip(letters);
        items.push(item(letters)?);
        skip(letters);
        match letters.next()? {
            ',' => {}
            letter if letter == end => return Some(items),
            _ => return None,
        }
    }
}

fn text(letters: &mut Peekable<Chars<'_>>) -> Option<String> {
    (letters.next()? == '"').then_some(())?;
    let mut out = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(out),
            '\\' => out.push(match letters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits: String = (0..4).map_while(|_| letters.next()).collect();
                    // Halves of a pair become a replacement: nothing here needs them.
                    char::from_u32(u32::from_str_radix(&digits, 16).ok()?).unwrap_or('\u{fffd}')
                }
                letter => letter,
            }),
            letter => out.push(letter),
        }
    }
}

fn skip(letters: &mut Peekable<Chars<'_>>) {
    while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_nonsense_is_not() {
        let read = parse(r#" {"a": [1, true, "x\n\"\u0041"], "b": {}} "#).unwrap();
        assert_eq!(read.get("a").unwrap().items()[2], Value::Text("x\n\"A".into()));
        assert_eq!(read.get("a").unwrap().items()[0], Value::Word("1".into()));
        for bad in ["", "{", "[1,]", "{\"a\"}", "\"x", "1 2", "{\"a\":1,}", "\"\\u12\""] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), None);
    }
}
