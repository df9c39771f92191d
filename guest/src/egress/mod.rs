//! The guest's part of the network: it listens where programs look for one, and says where each connection was
//! meant to go. What becomes of it is decided by the daemon; nothing here leads outside.
//!
//! `listeners` opens the sockets, `names` and `dns` make up an address for every name, `ports` looks the other way.
//! The connections themselves are the loop's (`crate::init::sockets`).

pub mod dns;
pub mod listeners;
pub mod names;
pub mod ports;
