//! What the consumer's calls of the producer hand over to the one who drives: how many batches may be passed, and when to
//! stop.
//!
//! The calls come from any thread, from within the handler's callbacks too, and call nothing back but a waker.

use core::fmt;
use core::task::{Context, Poll};

use crate::watched::Watched;

#[derive(Debug, Default)]
struct State {
    /// Batches that may still be passed.
    allowed: i64,
    /// A number that nobody can be asked for.
    impossible: Option<i64>,
    cancelled: bool,
}

/// Why the driver is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was cancelled, which is no error.
    Cancel,
    /// The consumer asked for so many, less than one.
    Impossible(i64),
}

/// The consumer's requests.
pub(crate) struct Orders(Watched<State>);

impl Orders {
    pub(crate) fn new() -> Self {
        Self(Watched::new(State::default()))
    }

    /// A5, A6: `n` more may be passed; less than 1 is an error; after cancel it is nothing at all.
    pub(crate) fn request(&self, n: i64) {
        self.0.change(|state| {
            if n > 0 {
                state.allowed = state.allowed.saturating_add(n);
            } else if !state.cancelled {
                state.impossible.get_or_insert(n);
            }
        });
    }

    /// A7: idempotent, from any thread.
    pub(crate) fn cancel(&self) {
        self.0.change(|state| state.cancelled = true);
    }

    /// Whether to stop. Nobody is woken later, while the driver is at work.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.0.lock().stop()
    }

    /// Whether to stop; if not, the waker is woken by the next call.
    pub(crate) fn poll_stop(&self, context: &Context<'_>) -> Poll<Stop> {
        self.0.poll(context, |state| state.stop())
    }

    /// Whether a batch may be passed, which counts as passed then, or to stop; if neither, the waker is woken by the next
    /// call.
    pub(crate) fn poll_pass(&self, context: &Context<'_>) -> Poll<Result<(), Stop>> {
        self.0.poll(context, |state| match state.stop() {
            Some(stop) => Some(Err(stop)),
            None => {
                state.allowed = state.allowed.checked_sub(1).filter(|left| *left >= 0)?;
                Some(Ok(()))
            }
        })
    }
}

impl State {
    fn stop(&self) -> Option<Stop> {
        if self.cancelled { Some(Stop::Cancel) } else { self.impossible.map(Stop::Impossible) }
    }
}

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orders").finish_non_exhaustive()
    }
}
