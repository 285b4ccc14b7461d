//! The primitives that the two hand-overs of asynchronous streams are made of, named in this one place so that a model
//! checker can compile `watched.rs`, `consumer/async_stream/inbox.rs` and `producer/async_stream/orders.rs` with its own.
//!
//! Why there are locks, and feature `async` asks for `std`: a producer may be freed once the handler's release has
//! returned, so release has to wait for a call of `request` or `cancel` that is under way on another thread, and a
//! thread that waits without an operating system can only spin.

use core::task::Waker;
use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use crate::panics::contain;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks runs no code of others, so nothing is left half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Wakes from within a callback of C's: a waker is somebody's code, and what it panics with ends here.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        contain(|| waker.wake()).ok();
    }
}

std::thread_local! {
    /// A place that each live thread has one of.
    static PLACE: u8 = const { 0 };
}

/// A thread, for the question whether this is the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller(usize);

impl Caller {
    pub(crate) fn current() -> Self {
        Self(PLACE.with(|place| (&raw const *place).addr()))
    }
}
