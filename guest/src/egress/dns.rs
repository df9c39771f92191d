//! Answers questions about names, from nothing but the question: an address that leads back to the guest. No query
//! ever leaves the sandbox.

use std::net::Ipv4Addr;

use super::names::Names;

/// The longest question that is looked at; names are at most 255 bytes.
pub const MAX_QUERY: usize = 1232;
const HEADER: usize = 12;
const TTL_SECONDS: u32 = 60;

const TYPE_A: u16 = 1;
const TYPE_PTR: u16 = 12;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;

const NO_ERROR: u8 = 0;
const FORMAT_ERROR: u8 = 1;
const NAME_ERROR: u8 = 3;
const NOT_IMPLEMENTED: u8 = 4;

struct Question<'a> {
    /// In lower case, without the last dot.
    name: String,
    kind: u16,
    class: u16,
    /// As it was asked, to be repeated in the answer.
    bytes: &'a [u8],
}

/// The answer to a query, or nothing when it is none.
pub fn answer(query: &[u8], names: &mut Names) -> Option<Vec<u8>> {
    let header: &[u8; HEADER] = query.first_chunk()?;
    let is_answer = header[2] & 0x80 != 0;
    if is_answer || query.len() > MAX_QUERY {
        return None;
    }
    let opcode = header[2] >> 3 & 0xf;
    let questions = u16::from_be_bytes([header[4], header[5]]);
    if opcode != 0 {
        return Some(reply(header, NOT_IMPLEMENTED, &[], None));
    }
    let question = if questions == 1 { question(&query[HEADER..]) } else { None };
    let Some(question) = question else { return Some(reply(header, FORMAT_ERROR, &[], None)) };
    if question.class != CLASS_IN {
        return Some(reply(header, NOT_IMPLEMENTED, question.bytes, None));
    }
    let (code, record) = match question.kind {
        TYPE_PTR => match reverse(&question.name, names) {
            Some(name) => (NO_ERROR, Some((TYPE_PTR, encode(&name)))),
            None => (NAME_ERROR, None),
        },
        _ if !is_host_name(&question.name) => (NAME_ERROR, None),
        TYPE_A | TYPE_ANY => (NO_ERROR, Some((TYPE_A, address(&question.name, names).octets().to_vec()))),
        // Other types, AAAA above all, are there and empty: programs go on with what there is.
        _ => (NO_ERROR, None),
    };
    Some(reply(header, code, question.bytes, record))
}

fn address(name: &str, names: &mut Names) -> Ipv4Addr {
    match name == "localhost" || name.ends_with(".localhost") {
        true => Ipv4Addr::LOCALHOST,
        false => names.address(name),
    }
}

/// The name of an address that was given to one: `4.3.18.198.in-addr.arpa`.
fn reverse(name: &str, names: &mut Names) -> Option<String> {
    let mut parts = name.strip_suffix(".in-addr.arpa")?.split('.');
    let mut octets = [0; 4];
    for octet in octets.iter_mut().rev() {
        *octet = parts.next()?.parse().ok()?;
    }
    if parts.next().is_some() {
        return None;
    }
    names.name(octets.into()).map(str::to_owned)
}

fn question(bytes: &[u8]) -> Option<Question<'_>> {
    let mut name = String::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        // Longer ones are pointers, which have nothing to point to in a question.
        if length > 63 || name.len() + length > 253 {
            return None;
        }
        let label = bytes.get(at..at + length)?;
        at += length;
        if !name.is_empty() {
            name.push('.');
        }
        // Whatever is no ASCII, or would be taken for a separator, is no host name either; one mark stands for it.
        let plain = |byte: &u8| match byte.to_ascii_lowercase() {
            byte if byte.is_ascii_graphic() && byte != b'.' => char::from(byte),
            _ => '?',
        };
        name.extend(label.iter().map(plain));
    }
    let rest = bytes.get(at..at + 4)?;
    let number = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
    Some(Question { name, kind: number(0), class: number(2), bytes: &bytes[..at + 4] })
}

/// Names that the daemon will hear of: labels of letters, digits, hyphens and underscores, and not an address.
fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let numeric = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    name.split('.').all(label) && !name.rsplit('.').next().is_some_and(numeric) && !name.ends_with(".arpa")
}

fn encode(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len() + 2);
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

fn reply(header: &[u8; HEADER], code: u8, question: &[u8], record: Option<(u16, Vec<u8>)>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + question.len() + 16 + 256);
    bytes.extend(&header[..2]);
    // An answer, by the authority itself, as far as recursion was wished for it is there.
    bytes.push(0x84 | header[2] & 0x79);
    bytes.push(0x80 | code);
    let counts = [u16::from(!question.is_empty()), u16::from(record.is_some()), 0, 0];
    bytes.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
    bytes.extend(question);
    if let Some((kind, data)) = record {
        // The name is that of the question.
        bytes.extend([0xc0, HEADER as u8]);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(CLASS_IN.to_be_bytes());
        bytes.extend(TTL_SECONDS.to_be_bytes());
        bytes.extend((data.len() as u16).to_be_bytes());
        bytes.extend(data);
    }
    bytes
}

#[cfg(test)]
#[path = "dns_tests.rs"]
mod tests;
