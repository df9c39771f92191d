//! Ways to the host: named serial ports.

use std::{
    fs, io,
    os::fd::OwnedFd,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    io::{Errno, read, write},
};

const NAMES: &str = "/sys/class/virtio-ports";
const PORT_WITHIN: Duration = Duration::from_secs(30);

/// The device of the port with this name. The kernel learns names a moment after the devices are there.
pub fn find(name: &str) -> io::Result<PathBuf> {
    let until = Instant::now() + PORT_WITHIN;
    loop {
        for entry in fs::read_dir(NAMES).into_iter().flatten().flatten() {
            let told = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            let device = PathBuf::from("/dev").join(entry.file_name());
            if told.trim() == name && device.exists() {
                return Ok(device);
            }
        }
        if Instant::now() > until {
            return Err(io::Error::other(format!("there is no port {name}")));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn open_port(device: &PathBuf) -> io::Result<OwnedFd> {
    Ok(open(device, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

/// Reads what is there; nothing while the host is not connected.
pub fn read_some(port: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    match read(port, buffer) {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(errno) => Err(errno.into()),
    }
}

/// Waits until a port has something, at most so long. A port whose host is not connected never waits: the pause
/// keeps that from being a busy loop.
pub fn wait_readable(port: &OwnedFd, limit: Duration) {
    let mut fds = [PollFd::new(port, PollFlags::IN)];
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    let _ = poll(&mut fds, Some(&limit));
    if fds[0].revents().contains(PollFlags::HUP) {
        thread::sleep(Duration::from_millis(20));
    }
}

pub fn write_all(port: &OwnedFd, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(port, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
