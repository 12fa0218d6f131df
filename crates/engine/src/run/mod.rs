//! A run: the event loop on a thread of its own, its samples, its end.
//!
//! [`Run::start`] returns at once. The loop's thread never waits for whoever reads the samples, and a panic in
//! it ends the run as failed.

mod alarm;
mod event_loop;
mod figures;
mod job;
mod limits;
mod notes;
mod opener;
mod pacing;
mod pipeline;
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

use crate::link::OpenError;
use crate::program::Program;
use event_loop::EventLoop;
use shared::Shared;

/// A run under way.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: Arc<AtomicI32>,
}

/// Tells the reader that the loop's thread has ended, also when it panics.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended();
    }
}

impl Run {
    /// Starts the loop's thread, which opens the connections and runs the job.
    ///
    /// # Errors
    /// No thread or file descriptor is left.
    pub fn start(job: Job, program: Arc<Program>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new()?);
        let thread_id = Arc::new(AtomicI32::new(0));
        let (mine, id) = (Arc::clone(&shared), Arc::clone(&thread_id));
        let thread = thread::Builder::new().name("event-loop".into()).spawn(move || {
            id.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::SeqCst);
            let _ended = Ended(Arc::clone(&mine));
            match EventLoop::new(&job, &program, &mine) {
                Ok(event_loop) => event_loop.run(),
                Err(error) => mine.refuse(error),
            }
        })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), thread_id })
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

    /// The loop's thread as the kernel numbers it, for its scheduling policy; 0 until it runs.
    pub fn thread_id(&self) -> i32 {
        self.thread_id.load(Ordering::SeqCst)
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
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
