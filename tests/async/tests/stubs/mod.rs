//! The other side of an asynchronous stream, made by hand on the raw structs, and a waker that counts.
#![allow(dead_code, unused_imports, reason = "each test program uses a part")]

pub mod handler;
pub mod producer;
pub mod source;

use core::ffi::c_int;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

use arrow_device_abi::raw::{ArrowDeviceArray, ArrowDeviceType};
use arrow_device_abi::{AsyncReceiver, Demand, Device, OwnedDeviceArray};
use futures_core::Stream;

use crate::common::{Counter, array, on_device};
use producer::{Asked, StubProducer};

/// The device of the stubs' arrays.
pub const CUDA: Device = Device::new(ArrowDeviceType::CUDA, 0);

/// An array of so many rows on that device.
pub fn batch(length: i64, released: &Counter) -> ArrowDeviceArray {
    on_device(array(length).counted(released), CUDA, None)
}

pub fn length(array: &OwnedDeviceArray) -> i64 {
    array.as_raw().array.length
}

/// A producer that has passed its schema, its log, and the receiver.
pub fn opened(demand: Demand) -> (StubProducer, Asked, AsyncReceiver) {
    let (handler, receive) = AsyncReceiver::prepare(demand);
    let (producer, asked) = StubProducer::opened(handler);
    (producer, asked, receive.wait().unwrap())
}

/// A task that polls by hand, and counts how often it was woken.
#[derive(Debug)]
pub struct Task {
    waker: Waker,
    woken: Counter,
}

struct Count(Counter);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.add();
    }
}

impl Default for Task {
    fn default() -> Self {
        let woken = Counter::new();
        Self { waker: Waker::from(Arc::new(Count(woken.clone()))), woken }
    }
}

impl Task {
    pub fn woken(&self) -> usize {
        self.woken.get()
    }

    pub fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        Pin::new(future).poll(&mut Context::from_waker(&self.waker))
    }

    pub fn next<S: Stream + Unpin>(&self, stream: &mut S) -> Poll<Option<S::Item>> {
        Pin::new(stream).poll_next(&mut Context::from_waker(&self.waker))
    }
}

/// The answer of a future or stream that has one.
pub fn ready<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("pending"),
    }
}

/// Pairs in the interface's encoding.
pub fn encoded(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = (pairs.len() as i32).to_ne_bytes().to_vec();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend((text.len() as i32).to_ne_bytes());
        bytes.extend(*text);
    }
    bytes
}

/// What a callback returns for success.
pub const OK: c_int = 0;
