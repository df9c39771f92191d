//! Threads for file calls. One that has ended its call waits a while for another: making a thread takes longer than most calls, where the
//! kernel is a program many times as long.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

const STACK_BYTES: usize = 256 * 1024;
/// Whoever works with files makes one call after another.
const MAX_IDLE: usize = 2;
const LINGER: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub struct Workers(Arc<Idle>);

#[derive(Default)]
struct Idle {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    threads: usize,
    /// Never more than there are threads to take them.
    jobs: VecDeque<Job>,
}

impl Workers {
    /// Runs the job on a thread that waits for one, or on a new one.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let job: Job = Box::new(job);
        let mut state = self.0.lock();
        if state.threads > state.jobs.len() {
            state.jobs.push_back(job);
            self.0.changed.notify_one();
            return Ok(());
        }
        drop(state);
        let idle = self.0.clone();
        let thread = thread::Builder::new().name("file call".into()).stack_size(STACK_BYTES);
        thread.spawn(move || idle.work(job)).map(drop)
    }
}

impl Idle {
    fn work(&self, first: Job) {
        let mut job = Some(first);
        while let Some(run) = job {
            run();
            job = self.next();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        if state.threads >= MAX_IDLE {
            return None;
        }
        state.threads += 1;
        let until = Instant::now() + LINGER;
        loop {
            let job = state.jobs.pop_front();
            let left = until.saturating_duration_since(Instant::now());
            if job.is_some() || left.is_zero() {
                state.threads -= 1;
                return job;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::mpsc::channel, thread::ThreadId};

    use super::*;

    #[test]
    fn threads_are_used_again_and_never_waited_for() {
        let workers = Workers::default();
        let (told, heard) = channel::<ThreadId>();
        let call = |hold: Option<Duration>| {
            let told = told.clone();
            let job = move || {
                if let Some(time) = hold {
                    thread::sleep(time);
                }
                told.send(thread::current().id()).unwrap();
            };
            workers.run(job).unwrap();
        };
        let mut used = HashSet::new();
        for _ in 0..50 {
            call(None);
            used.insert(heard.recv().unwrap());
            while workers.0.lock().threads == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(used.len(), 1);
        for _ in 0..8 {
            call(Some(Duration::from_millis(50)));
        }
        let at_once: HashSet<ThreadId> = (0..8).map(|_| heard.recv().unwrap()).collect();
        assert_eq!(at_once.len(), 8);
        while workers.0.lock().threads < MAX_IDLE {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(workers.0.lock().threads, MAX_IDLE);
    }
}
