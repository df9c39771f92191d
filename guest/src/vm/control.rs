//! The host's words to the machine, one a line: `open TOKEN SEED NANOSECONDS` makes the data port the guest's link, or
//! says that somebody will connect to the guest's own socket, where there is one;
//! `clock TOKEN NANOSECONDS` sets the time, `limit TOKEN BYTES` bounds the memory of everything inside; `ping TOKEN` asks whether the guest is there;
//! `park TOKEN` makes a machine whose wall is closed ready to be copied, and `wake TOKEN SEED NANOSECONDS NAME` makes a copy a
//! sandbox of its own (`parking`);
//! `rehearse TOKEN` has everything done once (`rehearsal`); `panic TOKEN` makes the kernel panic, to see what the host
//! makes of it.
//!
//! A serial port is one endless stream: bytes of a connection that was cut may still be on their way when the next
//! begins. So the host first says here that it comes, with a token; the guest lets go of the port; and both sides
//! throw away what lies before the token on the data port. Each word also brings a seed and the time, because the
//! machine may be a copy of another one that has just come to life.

use std::{
    fs,
    io::{self, IoSlice, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, epoll, poll},
    fs::{Mode, OFlags},
    io::{Errno, read},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, accept_with, sendmsg},
    process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid},
    time::{ClockId, Timespec, clock_settime},
};

use super::{
    DOOR,
    machine::bound_memory,
    parking::Parked,
    ports::{find, open_port, read_some, wait_readable, write_all},
    rehearsal::rehearse,
};
use crate::{
    frame::{HEADER_BYTES, Header, push_control},
    keeper::socket,
    proto::link::{HostControl, HostHello, host_control, host_hello::Role},
    rules::LINK_VERSION,
    sys::entropy::{self, SEED_BYTES},
};

const LINE_BYTES: usize = 4096;
const TOKEN_CHARACTERS: usize = 64;
/// The host sends its token right after our answer.
const TOKEN_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

pub struct Open {
    pub token: String,
    seed: [u8; SEED_BYTES],
    time: Timespec,
}

/// Serves the control port until the guest ends; gives its exit code.
pub fn serve(guest: Pid) -> io::Result<i32> {
    let control = open_port(&find("caisson.control")?)?;
    let data = find("caisson.data")?;
    let ended = pidfd_open(guest, PidfdFlags::empty())?;
    // By edges: a port whose host is not connected is always ready, and an idle machine is to cost nothing.
    let waiting = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&waiting, &control, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
    epoll::add(&waiting, &ended, epoll::EventData::new_u64(1), epoll::EventFlags::IN)?;
    let mut machine = Machine { guest, control, data, random: open_random()?, parked: None, woken: None };
    let mut line = Vec::new();
    let mut buffer = [0; 512];
    loop {
        let mut happened = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 2];
        match epoll::wait(&waiting, &mut happened[..], None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if let Some((_, status)) = waitpid(Some(guest), WaitOptions::NOHANG)? {
            return Ok(status.exit_status().unwrap_or(255));
        }
        loop {
            let count = read_some(&machine.control, &mut buffer)?;
            if count == 0 {
                break;
            }
            for byte in &buffer[..count] {
                match byte {
                    b'\n' => {
                        machine.hear(&String::from_utf8_lossy(&line));
                        line.clear();
                    }
                    _ if line.len() < LINE_BYTES => line.push(*byte),
                    _ => {}
                }
            }
        }
    }
}

/// The same where the host connects: each connection is one conversation, and they are had one after another.
pub fn serve_socket(guest: Pid, listening: &OwnedFd) -> io::Result<i32> {
    let (ended, random) = (pidfd_open(guest, PidfdFlags::empty())?, open_random()?);
    loop {
        let mut waiting = [PollFd::new(listening, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if let Some((_, status)) = waitpid(Some(guest), WaitOptions::NOHANG)? {
            return Ok(status.exit_status().unwrap_or(255));
        }
        if !waiting[0].revents().is_empty()
            && let Ok(connection) = accept_with(listening, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
        {
            converse(&connection, &random);
        }
    }
}

/// Until the host says no more, or nothing for a while.
fn converse(connection: &OwnedFd, random: &OwnedFd) {
    let (mut line, mut buffer) = (Vec::new(), [0; 512]);
    let until = Instant::now() + TOKEN_WITHIN;
    while Instant::now() < until {
        match read(connection, &mut buffer) {
            Ok(count @ 1..) => {
                for byte in &buffer[..count] {
                    match byte {
                        b'\n' => {
                            if let Some(answer) = answer(&String::from_utf8_lossy(&line), random) {
                                let _ = write_all(connection, answer.as_bytes(), Instant::now() + ANSWER_WITHIN);
                            }
                            line.clear();
                        }
                        _ if line.len() < LINE_BYTES => line.push(*byte),
                        _ => {}
                    }
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => wait_readable(connection, TOKEN_WITHIN),
            Ok(0) | Err(_) => return,
        }
    }
}

/// To a word that needs no port; none to what is no word.
fn answer(line: &str, random: &OwnedFd) -> Option<String> {
    let (word, words) = line.split_once(' ')?;
    let (token, done) = match word {
        "ping" => (words, Ok(())),
        "rehearse" => (words, rehearse()),
        "panic" => (words, fs::write("/proc/sysrq-trigger", "c")),
        "limit" => {
            let (token, bytes) = words.split_once(' ')?;
            (token, bytes.parse().map_err(io::Error::other).and_then(bound_memory))
        }
        "clock" => {
            let (token, nanoseconds) = words.split_once(' ')?;
            (token, clock_settime(ClockId::Realtime, parse_time(nanoseconds)?).map_err(Into::into))
        }
        "open" => (words.split(' ').next()?, refresh(random, &parse(words)?)),
        _ => return None,
    };
    Some(match done {
        Ok(()) => format!("ok {token}\n"),
        Err(error) => format!("error {token} {error}\n"),
    })
}

/// What is behind the ports.
struct Machine {
    guest: Pid,
    control: OwnedFd,
    data: PathBuf,
    random: OwnedFd,
    parked: Option<Parked>,
    /// Of no more use, and kept: closing its files frees a mount, which a copy's first command would wait for.
    woken: Option<Parked>,
}

impl Machine {
    /// Half a line of a connection that was cut is no word of ours, and is passed over.
    fn hear(&mut self, line: &str) {
        let (token, done) = match line.split_once(' ') {
            Some(("ping", token)) => (token, hand_over(None)),
            Some(("park", token)) => (token, self.park()),
            Some(("clock" | "limit" | "rehearse" | "panic", _)) => {
                let Some(answer) = answer(line, &self.random) else { return };
                return self.say(&answer);
            }
            Some(("open", words)) => {
                let Some(open) = parse(words) else { return };
                return self.open(&open);
            }
            Some(("wake", words)) => {
                let Some((open, name)) = words.rsplit_once(' ').and_then(|(open, name)| Some((parse(open)?, name)))
                else {
                    return;
                };
                return self.wake(&open, name);
            }
            _ => return,
        };
        match done {
            Ok(()) => self.say(&format!("ok {token}\n")),
            Err(error) => self.say(&format!("error {token} {error}\n")),
        }
    }

    fn say(&self, words: &str) {
        let _ = write_all(&self.control, words.as_bytes(), Instant::now() + ANSWER_WITHIN);
    }

    fn open(&mut self, open: &Open) {
        // A port has one user at a time.
        (self.parked, self.woken) = (None, None);
        let prepared = refresh(&self.random, open).and_then(|()| take_back()).and_then(|()| open_port(&self.data));
        match prepared {
            Ok(port) => {
                let until = Instant::now() + ANSWER_WITHIN;
                let said = write_all(&self.control, format!("ok {}\n", open.token).as_bytes(), until);
                if let Err(error) = said.and_then(|()| pass_on(port, &open.token)) {
                    eprintln!("caisson: the link's port: {error}");
                }
            }
            Err(error) => self.say(&format!("error {} {error}\n", open.token)),
        }
    }

    fn park(&mut self) -> io::Result<()> {
        self.parked = None;
        take_back()?;
        let parked = Parked::new(self.guest)?;
        hand_over(Some(&open_port(&self.data)?))?;
        self.parked = Some(parked);
        Ok(())
    }

    /// The guest has its port, on which nothing was ever said, so that it begins without a token: the host is silent there until it has
    /// its answer here.
    fn wake(&mut self, open: &Open, name: &str) {
        let Some(parked) = self.parked.take() else {
            return self.say(&format!("error {} the machine is not parked\n", open.token));
        };
        match refresh(&self.random, open).and_then(|()| parked.rename(name)) {
            Ok(()) => self.say(&format!("ok {}\n", open.token)),
            Err(error) => self.say(&format!("error {} {error}\n", open.token)),
        }
        self.woken = Some(parked);
    }
}

fn parse(words: &str) -> Option<Open> {
    let mut words = words.split(' ');
    let token = words.next().filter(|token| token.len() == TOKEN_CHARACTERS)?;
    let digits = words.next().filter(|digits| digits.len() == 2 * SEED_BYTES && digits.is_ascii())?;
    let time = parse_time(words.next()?)?;
    let mut seed = [0; SEED_BYTES];
    for (byte, pair) in seed.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    words.next().is_none().then(|| Open { token: token.into(), seed, time })
}

fn parse_time(nanoseconds: &str) -> Option<Timespec> {
    let nanoseconds: u64 = nanoseconds.parse().ok()?;
    Some(Timespec { tv_sec: (nanoseconds / 1_000_000_000) as i64, tv_nsec: (nanoseconds % 1_000_000_000) as i64 })
}

/// Held open: a copy has somebody waiting for it.
fn open_random() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/urandom", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// What a copy of a machine must not share with its original.
fn refresh(random: &OwnedFd, open: &Open) -> io::Result<()> {
    entropy::reseed(random, &open.seed)?;
    clock_settime(ClockId::Realtime, open.time)?;
    Ok(())
}

/// Throws away what lies before the token, answers with it, and gives the port to the guest.
fn pass_on(port: OwnedFd, token: &str) -> io::Result<()> {
    let until = Instant::now() + TOKEN_WITHIN;
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = read_some(&port, &mut buffer)?;
        seen.extend_from_slice(&buffer[..count]);
        if seen.ends_with(token.as_bytes()) {
            break;
        }
        seen.drain(..seen.len().saturating_sub(TOKEN_CHARACTERS));
        if count == 0 {
            if Instant::now() > until {
                return Err(io::Error::other("the host did not follow"));
            }
            wait_readable(&port, Duration::from_millis(200));
        }
    }
    write_all(&port, token.as_bytes(), until)?;
    hand_over(Some(&port))
}

/// Whether the guest has been given a port: a copy remembers what its original was given.
static HAS_PORT: AtomicBool = AtomicBool::new(false);

fn take_back() -> io::Result<()> {
    if HAS_PORT.load(Ordering::Relaxed) { hand_over(None) } else { Ok(()) }
}

/// Gives the guest a port, or makes it let go of the one it has; returns when it has.
fn hand_over(port: Option<&OwnedFd>) -> io::Result<()> {
    let mut stream = UnixStream::from(socket::connected(Path::new(DOOR))?);
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    send_port(&stream, port)?;
    // Its answer tells that the old port is closed: a port has one user at a time.
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let header = Header::decode(&header).map_err(|_| io::Error::other("the guest broke the rules of the link"))?;
    let mut payload = vec![0; header.length];
    stream.read_exact(&mut payload)
}

fn send_port(stream: &UnixStream, port: Option<&OwnedFd>) -> io::Result<()> {
    HAS_PORT.fetch_or(port.is_some(), Ordering::Relaxed);
    let hello = HostHello { role: Role::Port.into(), version: LINK_VERSION as u32, ..Default::default() };
    let mut frame = Vec::new();
    push_control(&mut frame, &HostControl { id: 1, message: Some(host_control::Message::Hello(hello)) });
    let descriptors: Vec<_> = port.iter().map(|port| port.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    sendmsg(stream, &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_whole_is_none() {
        let (token, seed) = ("a".repeat(64), "0f".repeat(64));
        let open = parse(&format!("{token} {seed} 1500000001")).unwrap();
        assert_eq!((open.token.len(), open.seed[63], open.time.tv_sec, open.time.tv_nsec), (64, 15, 1, 500_000_001));
        for words in [
            String::new(),
            format!("{token} {seed}"),
            format!("{} {seed} 1", &token[1..]),
            format!("{token} {}é 1", &seed[2..]),
            format!("{token} {} 1", "zz".repeat(64)),
            format!("{token} {seed} 1 more"),
            format!("{token} {seed} -1"),
        ] {
            assert!(parse(&words).is_none(), "{words}");
        }
    }
}
