use super::*;

fn query(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    bytes.extend(encode(name));
    bytes.extend(kind.to_be_bytes());
    bytes.extend(CLASS_IN.to_be_bytes());
    bytes
}

fn code(answer: &[u8]) -> u8 {
    answer[3] & 0xf
}

fn records(answer: &[u8]) -> u16 {
    u16::from_be_bytes([answer[6], answer[7]])
}

fn asked(name: &str, kind: u16) -> Vec<u8> {
    answer(&query(name, kind), &mut Names::default()).unwrap()
}

#[test]
fn a_name_gets_its_address_whatever_its_case() {
    let mut names = Names::default();
    let lower = answer(&query("example.com", TYPE_A), &mut names).unwrap();
    let mixed = answer(&query("eXaMple.COM", TYPE_A), &mut names).unwrap();
    assert_eq!(lower[..2], [0xab, 0xcd]);
    assert_eq!((code(&lower), records(&lower)), (NO_ERROR, 1));
    assert_eq!(lower[lower.len() - 4..], mixed[mixed.len() - 4..]);
    assert_eq!(lower[lower.len() - 4..lower.len() - 2], [198, 18]);
    // The question comes back as it was asked.
    assert_eq!(mixed[HEADER..HEADER + 13], query("eXaMple.COM", TYPE_A)[HEADER..HEADER + 13]);
}

#[test]
fn other_types_are_empty_and_what_is_no_name_does_not_exist() {
    for kind in [28, 15, 16, 65, 33] {
        assert_eq!((code(&asked("example.com", kind)), records(&asked("example.com", kind))), (NO_ERROR, 0));
    }
    for name in ["-a.com", "a b.com", "1.2.3.4", "a.127", "x.in-addr.arpa", "caf\u{e9}.com", "a..b"] {
        assert_ne!(code(&asked(name, TYPE_A)), NO_ERROR, "{name}");
    }
    for name in ["localhost", "app.localhost"] {
        let answer = asked(name, TYPE_A);
        assert_eq!(answer[answer.len() - 4..], [127, 0, 0, 1]);
    }
    assert_eq!(records(&asked("_srv.example.com", TYPE_A)), 1);
}

#[test]
fn addresses_lead_back_to_their_names() {
    let mut names = Names::default();
    let [_, _, c, d] = names.address("example.com").octets();
    let reversed = answer(&query(&format!("{d}.{c}.18.198.in-addr.arpa"), TYPE_PTR), &mut names).unwrap();
    assert!(reversed.ends_with(&encode("example.com")));
    for name in ["8.8.8.8.in-addr.arpa", "1.in-addr.arpa", "9.9.9.9.9.in-addr.arpa", "a.b.c.d.in-addr.arpa"] {
        assert_eq!(code(&asked(name, TYPE_PTR)), NAME_ERROR, "{name}");
    }
}

#[test]
fn what_is_no_question_gets_no_answer_or_an_error() {
    let mut names = Names::default();
    assert_eq!(answer(&[], &mut names), None);
    assert_eq!(answer(&[0; 11], &mut names), None);
    let mut response = query("a.com", TYPE_A);
    response[2] |= 0x80;
    assert_eq!(answer(&response, &mut names), None);
    let mut update = query("a.com", TYPE_A);
    update[2] |= 5 << 3;
    assert_eq!(code(&answer(&update, &mut names).unwrap()), NOT_IMPLEMENTED);
    let mut two = query("a.com", TYPE_A);
    two[5] = 2;
    assert_eq!(code(&answer(&two, &mut names).unwrap()), FORMAT_ERROR);
    let mut pointer = query("a.com", TYPE_A);
    pointer[HEADER] = 0xc0;
    assert_eq!(code(&answer(&pointer, &mut names).unwrap()), FORMAT_ERROR);
    let mut chaos = query("version.bind", 16);
    let end = chaos.len() - 1;
    chaos[end] = 3;
    assert_eq!(code(&answer(&chaos, &mut names).unwrap()), NOT_IMPLEMENTED);
    let long = "a".repeat(63);
    let too_long = [long.as_str(); 4].join(".") + ".com";
    assert_eq!(code(&answer(&query(&too_long, TYPE_A), &mut names).unwrap()), FORMAT_ERROR);
}

/// Mutated questions give an answer that is an answer, or none; never a panic, never one that is longer than it may be.
#[test]
fn mutated_questions_do_no_harm() {
    let mut state = 12345u64;
    let mut random = move |bound: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound
    };
    let mut names = Names::default();
    for _ in 0..100_000 {
        let name = ["example.com", "a.b.c.d.e", "1.2.3.4.in-addr.arpa", "localhost"][random(4)];
        let mut bytes = query(name, [TYPE_A, TYPE_PTR, 28, TYPE_ANY][random(4)]);
        for _ in 0..random(6) {
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        bytes.truncate(random(bytes.len() + 1).max(random(2) * bytes.len()));
        if let Some(answer) = answer(&bytes, &mut names) {
            assert!(answer.len() <= 512 && answer[2] & 0x80 != 0 && answer[..2] == bytes[..2]);
        }
    }
}
