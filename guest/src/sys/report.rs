//! What a monitor tells PID 1, in records of a fixed size.

use super::reap::Used;

pub const RECORD_BYTES: usize = 40;

/// Which step of starting a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    Monitor = 1,
    Terminal = 2,
    Limits = 3,
    Directory = 4,
    Confine = 5,
    Execute = 6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command has called exec.
    Started { pid: i32 },
    /// It could not; the monitor is gone.
    Refused { step: Step, errno: i32 },
    /// The command has ended; `left`: descendants of it go on.
    Exited { raw_status: i32, used: Used, left: bool },
}

impl Report {
    /// Allocates nothing: monitors call it.
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let (kind, first, second, used) = match *self {
            Self::Started { pid } => (1, pid, 0, Used::default()),
            Self::Refused { step, errno } => (2, step as i32, errno, Used::default()),
            Self::Exited { raw_status, used, left } => (3, raw_status, i32::from(left), used),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[0..4].copy_from_slice(&i32::to_le_bytes(kind));
        bytes[4..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..12].copy_from_slice(&second.to_le_bytes());
        bytes[16..24].copy_from_slice(&used.user_us.to_le_bytes());
        bytes[24..32].copy_from_slice(&used.system_us.to_le_bytes());
        bytes[32..40].copy_from_slice(&used.max_rss_bytes.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let int = |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| (int(at) as u32 as u64) | (int(at + 4) as u32 as u64) << 32;
        match int(0) {
            1 => Some(Self::Started { pid: int(4) }),
            2 => {
                let steps =
                    [Step::Monitor, Step::Terminal, Step::Limits, Step::Directory, Step::Confine, Step::Execute];
                let step = steps.into_iter().find(|step| *step as i32 == int(4))?;
                Some(Self::Refused { step, errno: int(8) })
            }
            3 => {
                let used = Used { user_us: long(16), system_us: long(24), max_rss_bytes: long(32) };
                Some(Self::Exited { raw_status: int(4), used, left: int(8) != 0 })
            }
            _ => None,
        }
    }
}
