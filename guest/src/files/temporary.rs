//! Names for what is not in place yet.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

/// A name that nobody has used: hidden, recognisable, and not to be guessed in advance.
pub fn name() -> Vec<u8> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // The keys of a new hasher are random; whoever guesses the name only makes the call fail.
    let random = RandomState::new().build_hasher().finish();
    format!(".caisson-{random:016x}-{number:x}").into_bytes()
}
