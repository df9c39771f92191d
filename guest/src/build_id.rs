//! Which build this is; the same in every role of the binary.

/// Version and a hash of the sources, made by build.rs.
pub const BUILD_ID: &str = env!("CAISSON_BUILD");
