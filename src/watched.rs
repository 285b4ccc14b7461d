//! A state behind a lock, and the waker of the one who waits for it to change: what both ends of an asynchronous stream
//! are made of.

use core::ops::{Deref, DerefMut};
use core::task::{Context, Poll, Waker};

use crate::sync::{Mutex, MutexGuard, lock, wake};

/// Wakers are somebody's code: none is cloned, woken or dropped under the lock.
pub(crate) struct Watched<T>(Mutex<State<T>>);

pub(crate) struct State<T> {
    value: T,
    waker: Option<Waker>,
}

pub(crate) type Locked<'a, T> = MutexGuard<'a, State<T>>;

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for State<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> State<T> {
    /// The waker, to be woken when the lock is given back.
    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        self.waker.take()
    }
}

impl<T> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(State { value, waker: None }))
    }

    pub(crate) fn lock(&self) -> Locked<'_, T> {
        lock(&self.0)
    }

    /// Changes the state, and wakes who waits for that.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        let waker = state.take_waker();
        drop(state);
        wake(waker);
        result
    }

    /// What is `ready`, or the waker is woken by the next change.
    pub(crate) fn poll<R>(
        &self,
        context: &Context<'_>,
        mut ready: impl FnMut(&mut T) -> Option<R>,
    ) -> Poll<R> {
        let mut state = self.lock();
        if let Some(result) = ready(&mut state) {
            return Poll::Ready(result);
        }
        if state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        drop(state);
        let waker = context.waker().clone();
        let mut state = self.lock();
        // It may have changed meanwhile, and woken nobody.
        if let Some(result) = ready(&mut state) {
            drop(state);
            drop(waker);
            return Poll::Ready(result);
        }
        let before = state.waker.replace(waker);
        drop(state);
        drop(before);
        Poll::Pending
    }
}
