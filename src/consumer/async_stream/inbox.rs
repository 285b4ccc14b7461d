//! What the producer's callbacks hand over to the consumer, and the consumer's calls of the producer.
//!
//! The producer may be called from when it has passed the schema until release returns, and by no more than one
//! `request` at a time. A callback on one thread and a consumer on another do not know of each other, so:
//! - no lock is held while the producer is called, which may call back at once;
//! - whoever wants a request while another is under way leaves it to that one's thread;
//! - release lets nobody call any more, and waits for calls that are under way on other threads. One on its own thread
//!   is the producer's doing, and has no use for its producer after it comes back.

use alloc::collections::VecDeque;
use core::fmt;
use core::mem;
use core::task::{Context, Poll};

use crate::sync::{Caller, Condvar, wait, wake};
use crate::watched::{Locked, Watched};

/// The producer, as the consumer calls it.
pub(crate) trait Upstream: Copy {
    /// Allows `n` more tasks; `n` is more than 0.
    ///
    /// # Safety
    ///
    /// - The handler's release has not returned, and no other `request` is under way.
    unsafe fn request(self, n: i64);

    /// Asks for the end. Called once.
    ///
    /// # Safety
    ///
    /// - The handler's release has not returned.
    unsafe fn cancel(self);
}

/// What became of a task.
#[must_use]
pub(crate) enum Pushed<T> {
    Queued,
    /// The consumer is gone.
    Unwanted(T),
    /// There can be no task now: there is no schema yet, or nothing more.
    Refused(T),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no schema yet.
    Waiting,
    Open,
    /// There will be no more tasks.
    Over,
}

struct State<S, T, E, P> {
    phase: Phase,
    /// What came with the schema, until it is taken.
    opened: Option<S>,
    queue: VecDeque<T>,
    /// What the consumer sees after the queue, once.
    error: Option<E>,
    /// While it may be called.
    producer: Option<P>,
    /// Tasks that the producer is yet to be asked for.
    wanted: i64,
    /// Tasks that it has been asked for.
    requested: i64,
    /// Tasks taken since they were last made up for by wanting others.
    taken: u32,
    /// The thread that `request` is under way on.
    requesting: Option<Caller>,
    /// The thread that `cancel` is under way on.
    cancelling: Option<Caller>,
    cancelled: bool,
    /// The consumer is gone.
    closed: bool,
    /// Release waits for calls to come back.
    releasing: bool,
}

/// `S` comes with the schema, `T` is a task, `E` an error, `P` the producer.
pub(crate) struct Inbox<S, T, E, P> {
    state: Watched<State<S, T, E, P>>,
    /// A call of the producer has come back.
    returned: Condvar,
    /// How many tasks to want by itself, 0 for none.
    prefetch: u32,
}

impl<S, T, E, P> State<S, T, E, P> {
    /// There will be no more: what ended it first counts.
    fn finish(&mut self, error: Option<E>) {
        if self.phase != Phase::Over {
            self.phase = Phase::Over;
            self.error = error;
        }
        self.producer = None;
    }
}

impl<S, T, E, P: Upstream> Inbox<S, T, E, P> {
    pub(crate) fn new(prefetch: u32) -> Self {
        let state = State {
            phase: Phase::Waiting,
            opened: None,
            queue: VecDeque::new(),
            error: None,
            producer: None,
            wanted: i64::from(prefetch),
            requested: 0,
            taken: 0,
            requesting: None,
            cancelling: None,
            cancelled: false,
            closed: false,
            releasing: false,
        };
        Self { state: Watched::new(state), returned: Condvar::new(), prefetch }
    }

    // ---- for the producer's callbacks, which come one at a time

    /// The schema came, first and once (A2); if not, it is given back.
    ///
    /// # Safety
    ///
    /// - `producer` can be called until [`release`](Self::release) returns, which will be called.
    pub(crate) unsafe fn open(&self, producer: P, opened: S) -> Result<(), S> {
        let mut state = self.state.lock();
        if state.phase != Phase::Waiting {
            return Err(opened);
        }
        state.phase = Phase::Open;
        let unwanted = if state.closed { Some(opened) } else { state.opened.replace(opened) };
        state.producer = Some(producer);
        let waker = state.take_waker();
        if state.cancelled {
            self.call_cancel(state);
        } else {
            self.call_request(state);
        }
        wake(waker);
        drop(unwanted);
        Ok(())
    }

    pub(crate) fn push(&self, task: T) -> Pushed<T> {
        self.state.change(|state| match state.phase {
            Phase::Open if state.closed => Pushed::Unwanted(task),
            Phase::Open => {
                state.queue.push_back(task);
                Pushed::Queued
            }
            Phase::Waiting | Phase::Over => Pushed::Refused(task),
        })
    }

    /// There are no more tasks; `false` if there cannot have been any.
    pub(crate) fn end(&self) -> bool {
        self.state.change(|state| {
            let was_open = state.phase == Phase::Open;
            if was_open {
                state.finish(None);
            }
            was_open
        })
    }

    /// The stream has failed: the first failure is the one to be seen.
    pub(crate) fn fail(&self, error: E) {
        self.state.change(|state| state.finish(Some(error)));
    }

    /// The last callback; `unfinished` is what the consumer sees of a stream that nobody has ended.
    pub(crate) fn release(&self, unfinished: E) {
        let mut state = self.state.lock();
        let unfinished = (!state.cancelled).then_some(unfinished);
        state.finish(unfinished);
        let waker = state.take_waker();
        let own = Some(Caller::current());
        let elsewhere = |caller: Option<Caller>| caller.is_some() && caller != own;
        while elsewhere(state.requesting) || elsewhere(state.cancelling) {
            state.releasing = true;
            state = wait(&self.returned, state);
        }
        drop(state);
        wake(waker);
    }

    // ---- for the consumer

    /// What came with the schema, or the error that came instead: `None` if it was taken before.
    pub(crate) fn poll_open(&self, context: &Context<'_>) -> Poll<Option<Result<S, E>>> {
        self.state.poll(context, |state| match state.opened.take() {
            Some(opened) => Some(Some(Ok(opened))),
            None if state.phase == Phase::Over => Some(state.error.take().map(Err)),
            None => None,
        })
    }

    /// The next task, the error after the last, or the end.
    pub(crate) fn poll_next(&self, context: &Context<'_>) -> Poll<Option<Result<T, E>>> {
        let prefetch = self.prefetch;
        let next = self.state.poll(context, |state| match state.queue.pop_front() {
            Some(task) => {
                // Half of them at a time: the producer is called less often, and always has some to make.
                let taken = state.taken.saturating_add(1);
                let make_up = prefetch > 0 && taken >= prefetch.div_ceil(2);
                state.taken = if make_up { 0 } else { taken };
                Some((Some(Ok(task)), if make_up { taken } else { 0 }))
            }
            None if state.phase == Phase::Over => Some((state.error.take().map(Err), 0)),
            None => None,
        });
        next.map(|(next, wanted)| {
            self.request(wanted);
            next
        })
    }

    /// Allows `n` more tasks: at once, with the request that is under way, or when the schema comes.
    pub(crate) fn request(&self, n: u32) {
        if n > 0 {
            let mut state = self.state.lock();
            state.wanted = state.wanted.saturating_add(i64::from(n));
            self.call_request(state);
        }
    }

    /// How many tasks the producer has been asked for.
    pub(crate) fn requested(&self) -> i64 {
        self.state.lock().requested
    }

    /// Asks for the end, once (A7).
    pub(crate) fn cancel(&self) {
        let mut state = self.state.lock();
        if !mem::replace(&mut state.cancelled, true) {
            self.call_cancel(state);
        }
    }

    /// The consumer goes: what came and what still comes is not wanted.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let unwanted = (mem::take(&mut state.queue), state.opened.take(), state.error.take());
        let waker = state.take_waker();
        if !mem::replace(&mut state.cancelled, true) {
            self.call_cancel(state);
        } else {
            drop(state);
        }
        drop((unwanted, waker));
    }

    fn call_request<'a>(&'a self, mut state: Locked<'a, State<S, T, E, P>>) {
        if state.requesting.is_some() {
            return;
        }
        while let Some(producer) = state.producer {
            let n = mem::take(&mut state.wanted);
            if n == 0 || state.cancelled {
                return;
            }
            state.requested = state.requested.saturating_add(n);
            state.requesting = Some(Caller::current());
            drop(state);
            // SAFETY: it could be called when `requesting` was set, so `open` was promised that it can until release
            // returns, and release waits for `requesting`, which also keeps others from calling it.
            unsafe { producer.request(n) };
            state = self.state.lock();
            state.requesting = None;
            self.note_return(&state);
        }
    }

    fn call_cancel<'a>(&'a self, mut state: Locked<'a, State<S, T, E, P>>) {
        let Some(producer) = state.producer else {
            return;
        };
        state.cancelling = Some(Caller::current());
        drop(state);
        // SAFETY: as in `call_request`, with `cancelling`.
        unsafe { producer.cancel() };
        let mut state = self.state.lock();
        state.cancelling = None;
        self.note_return(&state);
    }

    fn note_return(&self, state: &State<S, T, E, P>) {
        if state.releasing {
            self.returned.notify_all();
        }
    }
}

impl<S, T, E, P> fmt::Debug for Inbox<S, T, E, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("prefetch", &self.prefetch).finish_non_exhaustive()
    }
}
