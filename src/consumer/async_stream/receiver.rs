//! [`AsyncReceiver`]: the consumer's end of an asynchronous stream.

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::{FusedStream, Stream};
use static_assertions::assert_impl_all;

use super::{AsyncArrays, AsyncTask, Opened, Shared};
use crate::async_handler::AsyncHandler;
use crate::blocking::block_on;
use crate::owned::OwnedSchema;
use crate::raw::{ArrowAsyncDeviceStreamHandler, ArrowDeviceType};
use crate::stream_error::StreamError;
use crate::view::{Metadata, MetadataBuf, ViewError};

/// Who asks the producer for batches, and for how many: nothing comes that was not asked for (A5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Demand {
    /// The receiver does: so many are on their way or wait to be taken. 0 is taken for 1.
    ///
    /// The first are asked for as soon as the schema is there, others when half of them were taken.
    Prefetch(u32),
    /// The consumer does, with [`AsyncControl::request`].
    ByHand,
}

impl Demand {
    /// 0 for by hand.
    pub(super) const fn prefetch_depth(self) -> u32 {
        match self {
            Self::Prefetch(0) => 1,
            Self::Prefetch(depth) => depth,
            Self::ByHand => 0,
        }
    }
}

/// The consumer's hold on the stream; when it goes, what came and still comes is discarded.
#[derive(Debug)]
struct Hold(Arc<Shared>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.inbox.close();
    }
}

/// The end of a stream whose schema has not come: resolves to the [`AsyncReceiver`].
///
/// Dropped before that, it cancels the stream and discards what still comes. Fails with the producer's error, or with
/// what was wrong with the producer.
#[derive(Debug)]
#[must_use = "a receiver that is dropped cancels its stream"]
pub struct Receive(Option<Hold>);

impl Receive {
    /// Waits on this thread, which is parked: not for threads that the producer needs.
    ///
    /// # Errors
    ///
    /// As the future: a [`StreamError`].
    pub fn wait(mut self) -> Result<AsyncReceiver, StreamError> {
        block_on(|context| Pin::new(&mut self).poll(context))
    }
}

impl Future for Receive {
    type Output = Result<AsyncReceiver, StreamError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(hold) = &self.0 else {
            // Asked again after the answer.
            return Poll::Ready(Err(StreamError::Released));
        };
        hold.0.inbox.poll_open(context).map(|answer| {
            let hold = self.0.take();
            match (answer, hold) {
                (Some(Ok(opened)), Some(hold)) => Ok(AsyncReceiver {
                    control: AsyncControl(Arc::clone(&hold.0)),
                    hold,
                    opened,
                    done: false,
                }),
                (Some(Err(error)), _) => Err(error),
                _ => Err(StreamError::Unfinished),
            }
        })
    }
}

/// Receives an asynchronous device stream: its schema, and a [`Stream`] of tasks, on any executor or on none
/// ([interface](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#async-device-stream-interface)).
///
/// Begins with [`prepare`](Self::prepare), whose handler goes to the producer:
///
/// ```no_run
/// use arrow_device_abi::raw::ArrowAsyncDeviceStreamHandler;
/// use arrow_device_abi::{AsyncReceiver, Blocking, Demand, StreamError};
///
/// # unsafe extern "C" fn foreign_produce(_: *mut ArrowAsyncDeviceStreamHandler) {}
/// let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(4));
/// // SAFETY: the producer's function takes a live handler, which it releases at last.
/// unsafe { foreign_produce(handler.into_raw()) };
///
/// let receiver = receive.wait()?; // or `receive.await?`
/// println!("{} columns", receiver.schema().view().unwrap().n_children());
/// for array in Blocking::new(receiver.into_arrays()) { // or as a `Stream`
///     println!("a batch on {}", array?.device());
/// }
/// # Ok::<(), StreamError>(())
/// ```
///
/// As a stream it yields each task in its order; an error once, after the tasks that came before it; then the end.
/// [`into_arrays`](Self::into_arrays) makes it one of arrays. It has no thread of its own: wakers are called on the
/// producer's thread, and tasks are extracted on whichever the consumer likes.
///
/// Dropping it early cancels the stream. What is queued is discarded then, and so is all that the producer still passes.
#[derive(Debug)]
#[must_use = "a receiver that is dropped cancels its stream"]
pub struct AsyncReceiver {
    hold: Hold,
    control: AsyncControl,
    opened: Opened,
    done: bool,
}

assert_impl_all!(Receive: Send, Unpin);
assert_impl_all!(AsyncReceiver: Send, Unpin);
assert_impl_all!(AsyncControl: Send, Sync, Clone);

impl AsyncReceiver {
    /// A handler for a producer, and the consumer's end.
    ///
    /// The handler's memory is freed when it is released and the receiver is gone, whichever is last: so, if the
    /// receiver goes first, within the release callback. For a producer that looks at the struct after that, against the
    /// interface, there is [`prepare_at`](Self::prepare_at).
    pub fn prepare(demand: Demand) -> (AsyncHandler, Receive) {
        let shared = Shared::new(demand);
        (shared.own_handler(), Receive(Some(Hold(shared))))
    }

    /// Makes the struct at `handler` the handler, for a producer that is given this pointer.
    ///
    /// What was there is overwritten without being read. The memory stays the caller's, and holds a released struct once
    /// the handler is released. A handler that no producer gets has to be released all the same, as by
    /// [`AsyncHandler::from_raw`].
    ///
    /// # Safety
    ///
    /// - `handler` is [valid](core::ptr#safety) for reads and writes and aligned, and stays so, at this place, until its
    ///   release callback has returned. It need not be initialised.
    /// - Only the producer touches it from now on, and it obeys the interface: it sets a live producer before `on_schema`,
    ///   which can be called from any thread until release returns (A1), makes one call at a time (A14), and passes tasks
    ///   that may be extracted on any thread.
    pub unsafe fn prepare_at(handler: *mut ArrowAsyncDeviceStreamHandler, demand: Demand) -> Receive {
        let shared = Shared::new(demand);
        // SAFETY: valid for writes, as the caller promises.
        unsafe { handler.write(Arc::clone(&shared).handler()) };
        Receive(Some(Hold(shared)))
    }

    /// The schema of all arrays, in host memory.
    #[must_use]
    pub const fn schema(&self) -> &OwnedSchema {
        &self.opened.schema
    }

    /// Type of the device that every array is on (S1).
    #[must_use]
    pub const fn device_type(&self) -> ArrowDeviceType {
        self.opened.device_type
    }

    /// What the producer says of the whole stream, its `additional_metadata` (A13).
    ///
    /// # Errors
    ///
    /// [`ViewError::Metadata`] if it is malformed.
    pub fn metadata(&self) -> Result<Metadata<'_>, ViewError> {
        self.opened.metadata.as_ref().map(MetadataBuf::as_metadata).map_err(|error| *error)
    }

    /// What the stream is steered with, here or, cloned, elsewhere.
    #[must_use]
    pub const fn control(&self) -> &AsyncControl {
        &self.control
    }

    /// The arrays themselves, each extracted where the stream is polled.
    pub const fn into_arrays(self) -> AsyncArrays {
        AsyncArrays::new(self)
    }

    /// Ends it for the consumer: nothing more is yielded.
    pub(super) fn stop(&mut self) {
        self.done = true;
        self.control.cancel();
    }
}

impl Stream for AsyncReceiver {
    type Item = Result<AsyncTask, StreamError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        let next = self.hold.0.inbox.poll_next(context);
        if matches!(next, Poll::Ready(None | Some(Err(_)))) {
            self.done = true;
        }
        next.map_ok(|task| task.of_stream(self.opened.device_type))
    }
}

impl FusedStream for AsyncReceiver {
    fn is_terminated(&self) -> bool {
        self.done
    }
}

/// Steers a stream that is being received, from any thread. Clones steer the same stream, and keep it from nothing: when
/// it is over they do nothing.
#[derive(Clone)]
pub struct AsyncControl(Arc<Shared>);

impl AsyncControl {
    /// Allows the producer `n` more batches; 0 is none.
    ///
    /// May be called within anything. Beside [`Demand::Prefetch`] it adds to what the receiver asks for. After
    /// [`cancel`](Self::cancel) it does nothing (A6).
    pub fn request(&self, n: u32) {
        self.0.inbox.request(n);
    }

    /// How many batches the producer has been asked for so far, by whomever.
    #[must_use]
    pub fn requested(&self) -> i64 {
        self.0.inbox.requested()
    }

    /// Asks the producer to stop (A7).
    ///
    /// What it has passed and still passes can be taken; then comes the end, or the error that the producer has. Asked
    /// again, nothing happens.
    pub fn cancel(&self) {
        self.0.inbox.cancel();
    }
}

impl fmt::Debug for AsyncControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncControl").finish_non_exhaustive()
    }
}
