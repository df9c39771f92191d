//! Gives every role of the binary one name of its build, so that launcher, keeper and guest can tell
//! whether they belong together. It is a hash of the sources, so that building twice gives the same.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

const SOURCES: [&str; 4] = ["Cargo.toml", "Cargo.lock", "build.rs", "src"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files)?;
    }
    files.sort();
    let mut hash = Fnv::new();
    for file in files {
        let content = fs::read(&file)?;
        hash.add(file.to_string_lossy().as_bytes());
        hash.add(&content.len().to_le_bytes());
        hash.add(&content);
    }
    println!("cargo::rustc-env=CAISSON_BUILD={}-{:016x}", env!("CARGO_PKG_VERSION"), hash.0 as u64);
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// FNV-1a on 128 bits: it tells builds apart, it does not protect anything.
struct Fnv(u128);

impl Fnv {
    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }
}
