//! Writes guest/src/gen from a descriptor set made by `buf build`; see `npm run generate`.

use std::{env, fs, path::PathBuf};

use prost::Message;

/// The packages the guest speaks. The public contract is not among them: it is the daemon's.
const PACKAGES: [&str; 3] = ["caisson.link.v1", "caisson.keeper.v1", "caisson.terminal.v1"];

fn main() {
    let mut args = env::args_os().skip(1);
    let (image, out) = match (args.next(), args.next()) {
        (Some(image), Some(out)) => (PathBuf::from(image), PathBuf::from(out)),
        _ => panic!("usage: gen IMAGE OUT"),
    };
    let bytes = fs::read(&image).expect("read the descriptor set");
    let mut set = prost_types::FileDescriptorSet::decode(&*bytes).expect("a descriptor set");
    set.file.retain(|file| PACKAGES.contains(&file.package()));
    prost_build::Config::new().out_dir(&out).compile_fds(set).expect("generate");
}
