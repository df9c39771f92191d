//! What the sandbox uses now, by /proc and the file systems that are its own.

use rustix::{
    fs::{major, minor, statvfs},
    param::{clock_ticks_per_second, page_size},
};

use super::{guest::Guest, tree::Snapshot};
use crate::proto::link::UsageReport;

pub fn report(guest: &Guest) -> UsageReport {
    let snapshot = Snapshot::take();
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let waiting: Vec<i32> = guest.waiting().collect();
    let of_guest = |pid: i32| pid == me || guest.monitors.contains_key(&pid) || waiting.contains(&pid);
    let commands = snapshot.entries.iter().filter(|entry| !of_guest(entry.pid) && !entry.zombie);
    // Everybody's waited-for children are in their parents' numbers, PID 1's included: all of it adds up.
    let ticks: u64 = snapshot.entries.iter().map(|entry| entry.ticks).sum();
    let foreign = guest.wall.world().map_or(&[][..], |world| &world.foreign_devices);
    UsageReport {
        processes: commands.clone().count() as u32,
        rss_bytes: commands.map(|entry| entry.rss_pages).sum::<u64>() * page_size() as u64,
        cpu_us: ticks * 1_000_000 / clock_ticks_per_second(),
        disk_bytes: private_bytes(foreign),
    }
}

/// How often this kernel has ended a process for want of memory since it booted.
pub fn kernel_oom_kills() -> u64 {
    let counters = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let told = counters.lines().find_map(|line| line.strip_prefix("oom_kill "));
    told.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Bytes in the sandbox's own memory file systems.
fn private_bytes(foreign: &[u64]) -> u64 {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let foreign: Vec<String> = foreign.iter().map(|device| format!("{}:{}", major(*device), minor(*device))).collect();
    let mut seen: Vec<&str> = Vec::new();
    let mut total = 0;
    for (device, path) in mounts.lines().filter_map(private_mount) {
        if seen.contains(&device) || foreign.iter().any(|other| other == device) {
            continue;
        }
        seen.push(device);
        if let Ok(space) = statvfs(path) {
            total += space.f_blocks.saturating_sub(space.f_bfree) * space.f_frsize;
        }
    }
    total
}

/// Device and path of a line of mountinfo, if it is a tmpfs. Paths with blanks are none of ours.
fn private_mount(line: &str) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut fields = place.split(' ');
    let (device, path) = (fields.nth(2)?, fields.nth(1)?);
    (kind.split(' ').next() == Some("tmpfs")).then_some((device, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_file_systems_count() {
        let tmpfs = "36 35 0:31 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1k";
        assert_eq!(private_mount(tmpfs), Some(("0:31", "/tmp")));
        assert_eq!(private_mount("36 35 8:1 / /home rw shared:1 - ext4 /dev/sda rw"), None);
        assert_eq!(private_mount("garbage"), None);
    }
}
