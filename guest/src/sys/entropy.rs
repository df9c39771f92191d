//! The kernel's generator of random numbers, as only a machine's root may change it.

use std::os::fd::{AsFd, AsRawFd};

use super::check;

pub const SEED_BYTES: usize = 64;

/// As `struct rand_pool_info` of linux/random.h.
#[repr(C)]
struct Pool {
    entropy_bits: libc::c_int,
    bytes: libc::c_int,
    seed: [u8; SEED_BYTES],
}

const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;
const RNDRESEEDCRNG: libc::Ioctl = 0x5207;

/// Mixes a secret seed in and makes every generator start from it at once. Writing to /dev/urandom alone would change
/// nothing until the next reseeding, minutes later.
pub fn reseed(random: impl AsFd, seed: &[u8; SEED_BYTES]) -> rustix::io::Result<()> {
    let pool = Pool { entropy_bits: SEED_BYTES as i32 * 8, bytes: SEED_BYTES as i32, seed: *seed };
    let number = random.as_fd().as_raw_fd();
    // SAFETY: the structure has the layout that the call reads, its length is in it, and it outlives the call.
    check(unsafe { libc::ioctl(number, RNDADDENTROPY, &raw const pool) }.into())?;
    // SAFETY: this call takes no argument.
    check(unsafe { libc::ioctl(number, RNDRESEEDCRNG) }.into()).map(drop)
}
