//! Extended headers: lines of `LENGTH KEY=VALUE\n` before the member they speak of.

/// What a member's own header cannot say.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Extra {
    pub path: Option<Vec<u8>>,
    pub target: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub modified: Option<i64>,
}

impl Extra {
    /// Takes the lines of one extended header.
    pub fn parse(&mut self, mut bytes: &[u8]) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            let space =
                bytes.iter().take(20).position(|byte| *byte == b' ').ok_or("an extended header is malformed")?;
            let length = decimal(&bytes[..space]).and_then(|length| usize::try_from(length).ok());
            let length = length.filter(|length| *length > space + 1 && *length <= bytes.len());
            let length = length.ok_or("an extended header lies about its length")?;
            let line = bytes[space + 1..length].strip_suffix(b"\n").ok_or("an extended header is malformed")?;
            let equals = line.iter().position(|byte| *byte == b'=').ok_or("an extended header is malformed")?;
            self.take(&line[..equals], &line[equals + 1..])?;
            bytes = &bytes[length..];
        }
        Ok(())
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.target = Some(value.to_vec()),
            b"size" => self.size = Some(decimal(value).ok_or("a member's size is not a number")?),
            b"mtime" => self.modified = Some(seconds(value).ok_or("a member's time is not a number")?),
            _ if key.starts_with(b"GNU.sparse.") => return Err("a member is sparse"),
            // Owners, access times, attributes: never set from an archive.
            _ => {}
        }
        Ok(())
    }
}

/// One line, whose length counts its own digits.
pub fn put(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = 1 + key.len() + 1 + value.len() + 1;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    out.extend_from_slice(format!("{length} {key}=").as_bytes());
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// The whole seconds of a time with a fraction.
fn seconds(value: &[u8]) -> Option<i64> {
    let (sign, digits) = value.strip_prefix(b"-").map_or((1, value), |digits| (-1, digits));
    let whole = digits.split(|byte| *byte == b'.').next()?;
    i64::try_from(decimal(whole)?).ok()?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_with_their_own_length_and_read_back() {
        for length in [1, 5, 80, 86, 87, 88, 89, 90, 91, 980, 985, 990, 991, 992, 993] {
            let mut lines = Vec::new();
            put(&mut lines, "path", &vec![b'x'; length]);
            put(&mut lines, "size", b"12");
            let mut extra = Extra::default();
            extra.parse(&lines).unwrap();
            assert_eq!((extra.path.unwrap().len(), extra.size), (length, Some(12)));
        }
    }

    #[test]
    fn lines_that_lie_are_refused() {
        for bad in
            ["x", "9 path=a", "99 path=a\n", "3 a\n", "0 path=a\n", "9 path=a\nx", "12 size=-1\n  ", "11 size=1x\n"]
        {
            assert!(Extra::default().parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(Extra::default().parse(b"22 GNU.sparse.major=1\n").is_err());
        let mut extra = Extra::default();
        extra.parse(b"20 mtime=-12.345678\n").unwrap();
        assert_eq!(extra.modified, Some(-12));
    }
}
