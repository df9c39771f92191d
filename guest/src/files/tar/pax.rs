//! Extended headers: lines of `LENGTH KEY=VALUE\n` before the member they speak of.

use super::sparse::Map;

/// What a member's own header cannot say.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Extra {
    pub path: Option<Vec<u8>>,
    pub target: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub modified: Option<i64>,
    pub nanoseconds: u32,
    pub is_opaque: bool,
    pub has_attributes: bool,
    pub sparse: Option<Sparse>,
}

/// What is said of a member with holes.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Sparse {
    /// The form's number; forms before 1.0 have none.
    form: (u64, u64),
    name: Option<Vec<u8>>,
    size: Option<u64>,
    offset: Option<u64>,
    /// Offsets and lengths, as they were said.
    pieces: Vec<(u64, u64)>,
    list: Option<Vec<u8>>,
}

impl Sparse {
    /// The file's own name, where the header has another one.
    pub fn take_name(&mut self) -> Option<Vec<u8>> {
        self.name.take()
    }

    /// The map, and whether it is still to come: before the data.
    pub fn map(&self) -> Result<(Map, bool), &'static str> {
        let mut map = Map::new(self.size.ok_or("a sparse member has no size")?);
        for (offset, length) in &self.pieces {
            map.push(*offset, *length)?;
        }
        if let Some(list) = &self.list {
            map.push_list(list)?;
        }
        let is_to_come = match self.form {
            (0, _) => false,
            (1, 0) if self.pieces.is_empty() && self.list.is_none() => true,
            _ => return Err("a member is sparse in a form that is not known"),
        };
        Ok((map, is_to_come))
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let number = || decimal(value).ok_or("a sparse member's map is malformed");
        match key {
            b"major" => self.form.0 = number()?,
            b"minor" => self.form.1 = number()?,
            b"name" => self.name = Some(value.to_vec()),
            b"size" | b"realsize" => self.size = Some(number()?),
            b"offset" => self.offset = Some(number()?),
            b"numbytes" => {
                let offset = self.offset.take().ok_or("a sparse member's map is malformed")?;
                self.pieces.push((offset, number()?));
            }
            b"map" => self.list = Some(value.to_vec()),
            // The count of pieces, which the pieces say themselves.
            b"numblocks" => {}
            _ => return Err("a member is sparse in a form that is not known"),
        }
        Ok(())
    }
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
            b"mtime" => {
                self.modified = Some(seconds(value).ok_or("a member's time is not a number")?);
                self.nanoseconds = nanoseconds(value);
            }
            b"SCHILY.xattr.user.overlay.opaque" => {
                self.is_opaque = value == b"y";
                self.has_attributes |= !self.is_opaque;
            }
            // Owners, access times, attributes: never set from an archive.
            _ => {
                self.has_attributes |= is_attribute(key);
                if let Some(key) = key.strip_prefix(b"GNU.sparse.") {
                    self.sparse.get_or_insert_default().take(key, value)?;
                }
            }
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

pub fn decimal(digits: &[u8]) -> Option<u64> {
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

/// Nine digits of a time's fraction; none at all where it is before 1970 or malformed.
fn nanoseconds(value: &[u8]) -> u32 {
    let Some(point) = value.iter().position(|byte| *byte == b'.') else { return 0 };
    let digits: Vec<u8> = value[point + 1..].iter().copied().chain(std::iter::repeat(b'0')).take(9).collect();
    if value[0] == b'-' { 0 } else { decimal(&digits).and_then(|value| u32::try_from(value).ok()).unwrap_or(0) }
}

/// Does this say anything about a member beyond what every file has? What an overlay notes for itself may be lost.
fn is_attribute(key: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 4] = [b"SCHILY.xattr.", b"LIBARCHIVE.xattr.", b"SCHILY.acl.", b"RHT.security."];
    PREFIXES.iter().any(|prefix| key.starts_with(prefix)) && !key.starts_with(b"SCHILY.xattr.user.overlay.")
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
        for bad in ["25 GNU.sparse.numbytes=1\n", "22 GNU.sparse.major=x\n", "21 GNU.sparse.else=1\n"] {
            assert!(Extra::default().parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        let mut extra = Extra::default();
        extra.parse(b"20 mtime=-12.345678\n").unwrap();
        assert_eq!(extra.modified, Some(-12));
    }
}
