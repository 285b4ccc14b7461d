//! Streams and futures for those who have no executor.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::iter::FusedIterator;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::thread::{self, Thread};

use futures_core::{FusedStream, Stream};

/// Unparks the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls until there is an answer, and parks the thread in between.
pub(crate) fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(answer) = poll(&mut context) {
            return answer;
        }
        thread::park();
    }
}

/// A [`Stream`] as an iterator that waits on its thread, for those who have no executor.
///
/// The thread is parked, so it must not be one that the stream's producer needs.
#[derive(Debug)]
pub struct Blocking<S>(S);

impl<S: Stream + Unpin> Blocking<S> {
    /// The iterator; nothing is polled yet.
    pub const fn new(stream: S) -> Self {
        Self(stream)
    }
}

impl<S: Stream + Unpin> Iterator for Blocking<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        block_on(|context| Pin::new(&mut self.0).poll_next(context))
    }
}

impl<S: FusedStream + Unpin> FusedIterator for Blocking<S> {}
