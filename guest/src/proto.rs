//! The generated messages, under the names the code uses.

#[allow(clippy::all, dead_code)]
pub mod link {
    include!("gen/caisson.link.v1.rs");
}
#[allow(clippy::all, dead_code)]
pub mod keeper {
    include!("gen/caisson.keeper.v1.rs");
}
#[allow(clippy::all, dead_code)]
pub mod terminal {
    include!("gen/caisson.terminal.v1.rs");
}
