//! [`AsyncArrays`]: a stream of arrays over a stream of tasks.

use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};

use super::AsyncReceiver;
use crate::owned::OwnedDeviceArray;
use crate::stream_error::StreamError;

/// The arrays of an [`AsyncReceiver`], each extracted when it is yielded, on the thread that polls.
///
/// An error is yielded once, and is the end. Where extracting fails the stream is cancelled, and what the producer says
/// of it in `on_error` is the error, or the code of extracting if it says nothing (A10).
#[derive(Debug)]
#[must_use = "a stream that is dropped is cancelled"]
pub struct AsyncArrays {
    receiver: AsyncReceiver,
    /// Extracting has failed with this; what the producer has to say about it is yet to come.
    failed: Option<StreamError>,
}

impl AsyncArrays {
    pub(super) const fn new(receiver: AsyncReceiver) -> Self {
        Self { receiver, failed: None }
    }

    /// What the arrays come from: its schema, its device type, its control.
    pub const fn receiver(&self) -> &AsyncReceiver {
        &self.receiver
    }
}

impl Stream for AsyncArrays {
    type Item = Result<OwnedDeviceArray, StreamError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let task = match ready!(Pin::new(&mut self.receiver).poll_next(context)) {
                None => return Poll::Ready(self.failed.take().map(Err)),
                Some(Err(error)) => {
                    self.failed = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Some(Ok(task)) => task,
            };
            if self.failed.is_some() {
                drop(task);
                continue;
            }
            match task.extract() {
                Ok(array) => return Poll::Ready(Some(Ok(array))),
                Err(error @ StreamError::Failed { .. }) => {
                    self.failed = Some(error);
                    self.receiver.control().cancel();
                }
                Err(error) => {
                    self.receiver.stop();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl FusedStream for AsyncArrays {
    fn is_terminated(&self) -> bool {
        self.failed.is_none() && self.receiver.is_terminated()
    }
}
