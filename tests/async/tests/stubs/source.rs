//! What a stream is driven from: batches that a test hands in one by one.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrow_device_abi::{OwnedDeviceArray, StreamFailure};
use futures_core::Stream;

use crate::common::{Counter, own};

pub type Item = Result<OwnedDeviceArray, StreamFailure>;

#[derive(Default)]
struct Queue {
    /// `None` is the end.
    items: VecDeque<Option<Item>>,
    waker: Option<Waker>,
    polled: usize,
}

/// A stream that has what [`Feed`] has given it. Its end is counted.
pub struct Source(Arc<Mutex<Queue>>, Counter);

#[derive(Clone)]
pub struct Feed {
    queue: Arc<Mutex<Queue>>,
    pub dropped: Counter,
}

pub fn source() -> (Source, Feed) {
    let queue = Arc::new(Mutex::new(Queue::default()));
    let dropped = Counter::new();
    (Source(Arc::clone(&queue), dropped.clone()), Feed { queue, dropped })
}

/// An array of so many rows; its release is counted.
pub fn made(length: i64, released: &Counter) -> OwnedDeviceArray {
    own(super::batch(length, released))
}

impl Feed {
    fn push(&self, item: Option<Item>) {
        let mut queue = self.queue.lock().unwrap();
        queue.items.push_back(item);
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }

    pub fn batch(&self, length: i64, released: &Counter) {
        self.push(Some(Ok(made(length, released))));
    }

    pub fn error(&self, failure: StreamFailure) {
        self.push(Some(Err(failure)));
    }

    pub fn end(&self) {
        self.push(None);
    }

    /// Batches that were not asked for yet.
    pub fn left(&self) -> usize {
        self.queue.lock().unwrap().items.len()
    }

    pub fn polled(&self) -> usize {
        self.queue.lock().unwrap().polled
    }
}

impl Stream for Source {
    type Item = Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut queue = self.0.lock().unwrap();
        queue.polled += 1;
        match queue.items.pop_front() {
            Some(item) => Poll::Ready(item),
            None => {
                queue.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.1.add();
    }
}
