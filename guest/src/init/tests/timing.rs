use std::time::Instant;

use super::{Sandbox, host::command};

/// `cargo test --release exec_round_trip -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn exec_round_trip() {
    let (_sandbox, mut host) = Sandbox::sealed();
    let mut ours = Vec::new();
    let mut bare = Vec::new();
    for _ in 0..500 {
        let begun = Instant::now();
        let stream = host.start(command(&["/bin/true"])).unwrap();
        host.wait(stream);
        ours.push(begun.elapsed().as_micros());
        host.finish(stream);
        let begun = Instant::now();
        std::process::Command::new("/bin/true").status().unwrap();
        bare.push(begun.elapsed().as_micros());
    }
    ours.sort_unstable();
    bare.sort_unstable();
    let middle = ours.len() / 2;
    println!(
        "exec(/bin/true) over the link: p50 {} µs, p95 {} µs; bare spawn and wait: p50 {} µs",
        ours[middle],
        ours[ours.len() * 95 / 100],
        bare[middle]
    );
}
