//! A run: event loops, each on a thread of its own, their samples, their end.
//!
//! [`Run::start`] returns at once. A loop's thread never waits for whoever reads the samples, and a panic in
//! it ends the run as failed.

mod alarm;
mod connecting;
mod event_loop;
mod figures;
mod gate;
mod job;
mod limits;
mod merging;
mod notes;
mod opener;
mod pacing;
mod pipeline;
mod reporting;
mod shared;
mod terminal;
mod transaction;

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use figures::{Counts, Figures, KindFigures};
pub use job::{ArrivalKind, ErrorClass, ErrorTable, Job};
pub use shared::{Conclusion, Span};
pub use terminal::Outage;

use crate::link::{Logins, OpenError};
use crate::program::Program;
use event_loop::EventLoop;
use shared::Shared;

/// A run under way.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    thread_ids: Arc<[AtomicI32]>,
}

/// Tells the reader that a loop's thread has ended, also when it panics.
struct Ended(Arc<Shared>, usize);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended(self.1);
    }
}

impl Run {
    /// Starts the loops' threads, which open the connections and run the job.
    ///
    /// # Errors
    /// No thread or file descriptor is left.
    pub fn start(job: Job, program: Arc<Program>) -> std::io::Result<Self> {
        let loops = job.loops.clamp(1, job.connections.max(1)) as usize;
        let shared = Arc::new(Shared::new(loops)?);
        let thread_ids: Arc<[AtomicI32]> = (0..loops).map(|_| AtomicI32::new(0)).collect();
        let run = Self { shared, threads: Mutex::default(), thread_ids };
        let room = limits::make_room(u64::from(job.connections));
        let logins = Arc::new(Logins::new(job.login.clone()));
        let job = Arc::new(job);
        for number in 0..loops {
            let (shared, ids) = (Arc::clone(&run.shared), Arc::clone(&run.thread_ids));
            let (job, logins, program) = (Arc::clone(&job), Arc::clone(&logins), Arc::clone(&program));
            let room = room.clone();
            let work = move || {
                ids[number].store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::SeqCst);
                let _ended = Ended(Arc::clone(&shared), number);
                let event_loop = room
                    .map_err(OpenError::sentence)
                    .and_then(|()| EventLoop::new(&job, &logins, &program, &shared, number));
                match event_loop {
                    Ok(event_loop) => event_loop.run(),
                    Err(error) => shared.refuse(error),
                }
            };
            let thread = thread::Builder::new().name(format!("event-loop-{number}")).spawn(work);
            match thread {
                Ok(thread) => {
                    run.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
                }
                Err(error) => {
                    (number..loops).for_each(|missing| run.shared.ended(missing));
                    return Err(error);
                }
            }
        }
        Ok(run)
    }

    /// The next span, waiting at most `timeout`; None: none yet, or `is_over`.
    pub fn next(&self, timeout: Duration) -> Option<Span> {
        self.shared.next(timeout)
    }

    /// Whether the run has ended and every span was taken.
    pub fn is_over(&self) -> bool {
        self.shared.is_over()
    }

    /// Begin no further transaction; `immediate`: cancel the open ones, too.
    pub fn stop(&self, immediate: bool) {
        self.shared.stop(immediate);
    }

    /// The loops' threads as the kernel numbers them, for their scheduling policy; 0 until they run.
    pub fn thread_ids(&self) -> Vec<i32> {
        self.thread_ids.iter().map(|id| id.load(Ordering::SeqCst)).collect()
    }

    fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// How it ended; waits for that. Asked once.
    ///
    /// # Errors
    /// A connection could not be opened before the run began, or the loop panicked.
    pub fn conclusion(&self) -> Result<Conclusion, OpenError> {
        self.join();
        self.shared.take_conclusion().unwrap_or_else(|| {
            Err(OpenError::sentence("the load engine failed inside; please report this".into()))
        })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.shared.stop(true);
        self.join();
    }
}
