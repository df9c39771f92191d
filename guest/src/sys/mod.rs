//! The only modules with `unsafe`: thin, safe wrappers around what rustix does not offer.

pub mod detach;
pub mod signalfd;
