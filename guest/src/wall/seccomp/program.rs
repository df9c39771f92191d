//! A small assembler: decision trees over a system call's number and arguments, as classic BPF.

use crate::sys::seccomp::Instruction;

const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;

/// What a filter answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// The call fails with this errno; the process lives on.
    Refuse(i32),
    /// Nothing is done, and the caller is told that it was.
    Pretend,
}

impl Verdict {
    pub const fn code(self) -> u32 {
        match self {
            Verdict::Allow => 0x7fff_0000,
            Verdict::Refuse(errno) => 0x0005_0000 | errno as u32,
            Verdict::Pretend => 0x0005_0000,
        }
    }
}

/// A question about one half of an argument. It is the low one unless the whole counts: every argument asked about is an
/// int, or a long of which the kernel itself takes the low half, so that high bits change nothing, or a pointer.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// Any of these bits is set.
    AnyBit(u32),
    /// Under the mask, it equals one of these.
    OneOf(u32, &'static [u32]),
}

#[derive(Clone, Debug)]
pub enum Tree {
    Is(Verdict),
    If { offset: u32, test: Test, then: Box<Tree>, otherwise: Box<Tree> },
}

pub const ALLOW: Tree = Tree::Is(Verdict::Allow);
pub const PRETEND: Tree = Tree::Is(Verdict::Pretend);

pub fn refuse(errno: i32) -> Tree {
    Tree::Is(Verdict::Refuse(errno))
}

pub fn when(argument: u32, test: Test, then: Tree, otherwise: Tree) -> Tree {
    Tree::If { offset: OFFSET_ARGUMENTS + 8 * argument, test, then: Box::new(then), otherwise: Box::new(otherwise) }
}

/// Decides by whether an argument is a pointer to something: both halves count.
pub fn when_given(argument: u32, then: Tree, otherwise: Tree) -> Tree {
    let high = Tree::If {
        offset: OFFSET_ARGUMENTS + 8 * argument + 4,
        test: Test::AnyBit(u32::MAX),
        then: Box::new(then.clone()),
        otherwise: Box::new(otherwise),
    };
    when(argument, Test::AnyBit(u32::MAX), then, high)
}

pub const fn statement(code: u16, value: u32) -> Instruction {
    Instruction { code, jump_true: 0, jump_false: 0, value }
}

const fn branch(code: u16, value: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code, jump_true, jump_false, value }
}

const fn answer(verdict: Verdict) -> Instruction {
    statement(RETURN, verdict.code())
}

/// Builds a whole filter: other machine architectures and numbers from `first_foreign` on are refused,
/// then each number goes to its tree, and what has none is refused with ENOSYS.
pub fn assemble(arch: u32, first_foreign: Option<u32>, mut rules: Vec<(u32, Tree)>) -> Vec<Instruction> {
    let unknown = Verdict::Refuse(libc::ENOSYS);
    let mut program = vec![
        statement(LOAD_WORD, OFFSET_ARCH),
        branch(JUMP_EQUAL, arch, 1, 0),
        answer(unknown),
        statement(LOAD_WORD, OFFSET_NUMBER),
    ];
    if let Some(first) = first_foreign {
        program.extend([branch(JUMP_GREATER_OR_EQUAL, first, 0, 1), answer(unknown)]);
    }
    rules.sort_by_key(|(number, _)| *number);
    program.extend(search(&intervals(rules, unknown)));
    program
}

/// A filter that refuses one call and has no opinion on the others.
pub const fn refuse_only(number: u32, errno: i32) -> [Instruction; 4] {
    [
        statement(LOAD_WORD, OFFSET_NUMBER),
        branch(JUMP_EQUAL, number, 0, 1),
        answer(Verdict::Refuse(errno)),
        answer(Verdict::Allow),
    ]
}

/// Each first number from which on a piece of code applies, with gaps filled and equal neighbours joined.
fn intervals(rules: Vec<(u32, Tree)>, unknown: Verdict) -> Vec<(u32, Vec<Instruction>)> {
    let mut intervals: Vec<(u32, Vec<Instruction>)> = vec![(0, vec![answer(unknown)])];
    let mut add = |start: u32, code: Vec<Instruction>| match intervals.last_mut() {
        Some((_, last)) if *last == code => {}
        Some((at, last)) if *at == start => *last = code,
        _ => intervals.push((start, code)),
    };
    for (number, tree) in rules {
        add(number, compile(&tree));
        add(number + 1, vec![answer(unknown)]);
    }
    join(intervals)
}

/// A gap of length zero leaves an interval that was overwritten; its neighbours may be equal now.
fn join(intervals: Vec<(u32, Vec<Instruction>)>) -> Vec<(u32, Vec<Instruction>)> {
    let mut joined: Vec<(u32, Vec<Instruction>)> = Vec::with_capacity(intervals.len());
    for (start, code) in intervals {
        if joined.last().is_none_or(|(_, last)| *last != code) {
            joined.push((start, code));
        }
    }
    joined
}

/// Binary search; the number is in the accumulator.
fn search(intervals: &[(u32, Vec<Instruction>)]) -> Vec<Instruction> {
    if let [(_, code)] = intervals {
        return code.clone();
    }
    let (low, high) = intervals.split_at(intervals.len() / 2);
    let (left, right) = (search(low), search(high));
    let mut code = vec![branch(JUMP_GREATER_OR_EQUAL, high[0].0, 0, 1), statement(JUMP, left.len() as u32)];
    code.extend(left);
    code.extend(right);
    code
}

fn compile(tree: &Tree) -> Vec<Instruction> {
    let (offset, test, then, otherwise) = match tree {
        Tree::Is(verdict) => return vec![answer(*verdict)],
        Tree::If { offset, test, then, otherwise } => (offset, test, compile(then), compile(otherwise)),
    };
    let mut code = vec![statement(LOAD_WORD, *offset)];
    let comparisons: Vec<(u16, u32)> = match test {
        Test::AnyBit(bits) => vec![(JUMP_ANY_BIT, *bits)],
        Test::OneOf(mask, values) => {
            if *mask != u32::MAX {
                code.push(statement(AND, *mask));
            }
            values.iter().map(|value| (JUMP_EQUAL, *value)).collect()
        }
    };
    // Each comparison that holds jumps over the others and over the long jump to `otherwise`.
    let count = comparisons.len();
    for (index, (kind, value)) in comparisons.into_iter().enumerate() {
        code.push(branch(kind, value, (count - index) as u8, 0));
    }
    code.push(statement(JUMP, then.len() as u32));
    code.extend(then);
    code.extend(otherwise);
    code
}

#[cfg(test)]
pub mod emulator {
    use super::*;

    pub struct Call {
        pub arch: u32,
        pub number: u32,
        pub arguments: [u64; 6],
    }

    /// Runs a filter as the kernel would.
    pub fn run(program: &[Instruction], call: &Call) -> u32 {
        let mut at = 0;
        let mut accumulator = 0u32;
        loop {
            let Instruction { code, jump_true, jump_false, value } = program[at];
            at += 1;
            let holds = match code {
                LOAD_WORD => {
                    accumulator = match value {
                        OFFSET_NUMBER => call.number,
                        OFFSET_ARCH => call.arch,
                        offset => {
                            let argument = call.arguments[((offset - OFFSET_ARGUMENTS) / 8) as usize];
                            (argument >> (8 * ((offset - OFFSET_ARGUMENTS) % 8))) as u32
                        }
                    };
                    continue;
                }
                AND => {
                    accumulator &= value;
                    continue;
                }
                JUMP => {
                    at += value as usize;
                    continue;
                }
                RETURN => return value,
                JUMP_EQUAL => accumulator == value,
                JUMP_GREATER_OR_EQUAL => accumulator >= value,
                JUMP_ANY_BIT => accumulator & value != 0,
                other => panic!("unknown instruction {other:#x}"),
            };
            at += usize::from(if holds { jump_true } else { jump_false });
        }
    }
}
