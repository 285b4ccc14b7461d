//! [`Drive`]: the future that passes a stream's batches to a handler.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use core::ffi::c_int;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::{fmt, mem, ptr};

use futures_core::Stream;

use super::block::{Block, Slot};
use super::orders::Stop;
use crate::async_handler::AsyncHandler;
use crate::blocking::block_on;
use crate::errno::{EINVAL, EIO};
use crate::owned::{OwnedDeviceArray, OwnedSchema};
use crate::panics::contain;
use crate::producer::StreamFailure;
use crate::producer::stream::Produced;
use crate::raw::{ArrowDeviceArrayStream, ArrowDeviceType};
use crate::view::MetadataBuf;

/// A batch for an asynchronous stream, and what to tell the consumer with it. Made of an array, it has nothing to tell.
#[derive(Debug)]
pub struct AsyncBatch {
    /// The array.
    pub array: OwnedDeviceArray,
    /// Key-value pairs that are passed with it (A4).
    pub metadata: MetadataBuf,
}

impl From<OwnedDeviceArray> for AsyncBatch {
    fn from(array: OwnedDeviceArray) -> Self {
        Self { array, metadata: MetadataBuf::default() }
    }
}

/// How a driven stream ended. The handler has been released, whichever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the stream may have failed"]
#[non_exhaustive]
pub enum Driven {
    /// The handler got every batch, and the end.
    Complete,
    /// The consumer cancelled it (A7).
    Cancelled,
    /// The handler answered a callback with a code that is not 0, and got nothing more but its release (A3).
    Refused {
        /// Name of the callback.
        callback: &'static str,
        /// The code.
        code: i32,
    },
    /// The handler was told of this error (A8): the source's, a panic of the source's, or a request for less than one
    /// batch.
    Failed(StreamFailure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The handler has not been called.
    Begin,
    /// The schema was passed.
    Running,
}

/// What a driver holds until the handler is released.
struct Running<S> {
    handler: AsyncHandler,
    stage: Stage,
    device_type: ArrowDeviceType,
    schema: OwnedSchema,
    block: Arc<Block>,
    source: Pin<Box<S>>,
    /// One batch is made ahead of the consumer's request, so that the end is known when the last one was passed.
    ahead: Option<AsyncBatch>,
}

/// Drives a stream of batches into a handler: a future for any executor, or to be [waited](Self::wait) for.
///
/// Made by [`AsyncHandler::drive`] and [`AsyncHandler::drive_iter`], which say what it does. Dropped before it is done, it
/// tells the handler of an error and releases it.
#[must_use = "nothing is passed unless it is polled"]
pub struct Drive<S>(Result<Running<S>, Driven>);

impl AsyncHandler {
    /// Passes this schema and the batches of `source` to the handler, once the future is polled
    /// ([interface](https://arrow.apache.org/docs/format/CDeviceDataInterface.html#async-device-stream-interface)).
    ///
    /// The handler gets its producer before anything else (A1), the schema first (A2), never more batches than it asked
    /// for (A5), and each call only after the one before has returned (A14), on whatever thread polls. It may ask and
    /// cancel within its callbacks and from anywhere else (A6, A7). The source is polled for one batch ahead of that.
    /// At last it is released (A9), after
    /// - the end of the source, as a null task;
    /// - an error of the source, or its panic, told with code and text by `on_error`. An array that is released, or on
    ///   another type of device, is such an error too (S1), and so is a request for less than one batch (A6);
    /// - cancel, with no error;
    /// - an answer that is not 0, with no further call (A3). A task that is refused and was not extracted within the call
    ///   is freed: the handler must not extract it later.
    ///
    /// The batches have to be extracted by the consumer, once each, also after release (A10). The producer struct lives
    /// until the last of them is.
    ///
    /// # Safety
    ///
    /// - Every array that `source` yields is one of `schema` (D15), by which the consumer will read its buffers: of its
    ///   type, node by node, as is promised of one that is exported. Nobody can see that of an array.
    pub unsafe fn drive<S, B, E>(
        self,
        device_type: ArrowDeviceType,
        schema: OwnedSchema,
        source: S,
    ) -> Drive<S>
    where
        S: Stream<Item = Result<B, E>>,
        B: Into<AsyncBatch>,
        E: Into<StreamFailure>,
    {
        Drive(Ok(Running {
            handler: self,
            stage: Stage::Begin,
            device_type,
            schema,
            block: Block::new(device_type, MetadataBuf::default()),
            source: Box::pin(source),
            ahead: None,
        }))
    }

    /// As [`drive`](Self::drive), from an iterator, which is called where the future is polled.
    ///
    /// # Safety
    ///
    /// - As for [`drive`](Self::drive).
    pub unsafe fn drive_iter<I, B, E>(
        self,
        device_type: ArrowDeviceType,
        schema: OwnedSchema,
        source: I,
    ) -> Drive<IterStream<I::IntoIter>>
    where
        I: IntoIterator<Item = Result<B, E>>,
        B: Into<AsyncBatch>,
        E: Into<StreamFailure>,
    {
        // SAFETY: as the caller promises.
        unsafe { self.drive(device_type, schema, IterStream(source.into_iter())) }
    }
}

impl<S> Drive<S> {
    /// Says this of the whole stream, in the producer's `additional_metadata` (A13). To be called before the first poll.
    pub fn with_metadata(mut self, metadata: MetadataBuf) -> Self {
        if let Ok(running @ Running { stage: Stage::Begin, .. }) = &mut self.0 {
            running.block = Block::new(running.device_type, metadata);
        }
        self
    }
}

impl<S, B, E> Drive<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Into<AsyncBatch>,
    E: Into<StreamFailure>,
{
    /// Drives to the end on this thread, which is parked while there is nothing to do.
    pub fn wait(mut self) -> Driven {
        block_on(|context| Pin::new(&mut self).poll(context))
    }
}

impl<S, B, E> Running<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Into<AsyncBatch>,
    E: Into<StreamFailure>,
{
    /// Goes on as far as it can.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Driven> {
        if matches!(self.stage, Stage::Begin) {
            self.stage = Stage::Running;
            if let Err(end) = self.pass_schema() {
                return Poll::Ready(end);
            }
        }
        loop {
            if let Some(stop) = self.block.orders.stop() {
                return Poll::Ready(stopped(stop));
            }
            let batch = match self.ahead.take() {
                Some(batch) => batch,
                None => match self.poll_source(context) {
                    // Both are waited for: the source has the waker already.
                    Poll::Pending => return self.block.orders.poll_stop(context).map(stopped),
                    Poll::Ready(Ok(Some(batch))) => batch,
                    Poll::Ready(Ok(None)) => return Poll::Ready(self.pass_end()),
                    Poll::Ready(Err(failure)) => return Poll::Ready(Driven::Failed(failure)),
                },
            };
            match self.block.orders.poll_pass(context) {
                Poll::Pending => {
                    self.ahead = Some(batch);
                    return Poll::Pending;
                }
                Poll::Ready(Err(stop)) => return Poll::Ready(stopped(stop)),
                Poll::Ready(Ok(())) => {}
            }
            if let Err(end) = self.pass(batch) {
                return Poll::Ready(end);
            }
        }
    }

    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<AsyncBatch>, StreamFailure>> {
        let source = self.source.as_mut();
        let next = contain(|| source.poll_next(context).map_ok(Into::into).map_err(Into::into));
        Poll::Ready(match next {
            Err(panic) => Err(panic.into()),
            Ok(next) => ready!(next).transpose().and_then(|batch: Option<AsyncBatch>| {
                if let Some(AsyncBatch { array, .. }) = &batch {
                    ArrowDeviceArrayStream::admit(self.device_type, array.as_raw())?;
                }
                Ok(batch)
            }),
        })
    }
}

/// What the handler answered, if it goes on.
fn answered(callback: &'static str, code: c_int) -> Result<(), Driven> {
    if code == 0 { Ok(()) } else { Err(Driven::Refused { callback, code }) }
}

fn invalid(message: &str) -> Driven {
    Driven::Failed(StreamFailure::new(EINVAL, message))
}

fn stopped(stop: Stop) -> Driven {
    match stop {
        Stop::Cancel => Driven::Cancelled,
        Stop::Impossible(n) => invalid(&format!("the consumer requested {n} batches")),
    }
}

/// The handler's calls. It is live until it is dropped, calls are made one at a time by whoever holds `&mut self`, and no
/// reference to it is held meanwhile.
impl<S> Running<S> {
    /// A1: before any call but release.
    fn offer(&mut self) {
        let handler = self.handler.as_ptr();
        // SAFETY: valid for writes, being live.
        unsafe { (*handler).producer = self.block.producer() };
    }

    /// A2, A11: the handler moves the schema out; if it does not, it is released here.
    fn pass_schema(&mut self) -> Result<(), Driven> {
        self.offer();
        let mut schema = mem::take(&mut self.schema);
        if schema.is_released() {
            return Err(invalid("the schema of the stream is released"));
        }
        let handler = self.handler.as_ptr();
        // SAFETY: valid for reads, being live.
        let on_schema =
            unsafe { (*handler).on_schema }.ok_or_else(|| invalid("the handler has no on_schema"))?;
        // SAFETY: a live handler that has its producer, the first call, and a live schema that is the handler's to take.
        answered("on_schema", unsafe { on_schema(handler, schema.as_mut_ptr()) })
    }

    /// A4: the task and what is told with it are valid during the call.
    fn pass(&mut self, batch: AsyncBatch) -> Result<(), Driven> {
        let AsyncBatch { array, metadata } = batch;
        let handler = self.handler.as_ptr();
        // SAFETY: valid for reads, being live.
        let on_next_task =
            unsafe { (*handler).on_next_task }.ok_or_else(|| invalid("the handler has no on_next_task"))?;
        let (slot, mut task) = Slot::new(array, &self.block);
        // SAFETY: a live handler that has its producer and its schema and asked for this batch; the task is one that it
        // may copy, and extract once.
        let code = unsafe { on_next_task(handler, &raw mut task, metadata.as_ptr()) };
        if code != 0 {
            // SAFETY: a handler that refuses a task does not extract it afterwards.
            unsafe { slot.refused() };
        }
        answered("on_next_task", code)
    }

    /// A4: the end.
    fn pass_end(&mut self) -> Driven {
        let handler = self.handler.as_ptr();
        // SAFETY: valid for reads, being live.
        let Some(on_next_task) = (unsafe { (*handler).on_next_task }) else {
            return invalid("the handler has no on_next_task");
        };
        // SAFETY: a live handler that has its producer and its schema; a null task is the end.
        let code = unsafe { on_next_task(handler, ptr::null_mut(), ptr::null()) };
        answered("on_next_task", code).err().unwrap_or(Driven::Complete)
    }

    /// A8: what is left to be said before release.
    fn tell(&mut self, failure: &StreamFailure) {
        self.offer();
        let handler = self.handler.as_ptr();
        // SAFETY: valid for reads, being live.
        if let Some(on_error) = unsafe { (*handler).on_error } {
            // SAFETY: a live handler that has its producer; the text ends in NUL and outlives the call.
            unsafe { on_error(handler, failure.code(), failure.message().as_ptr(), ptr::null()) };
        }
    }

    fn finish(mut self, end: &Driven) {
        if let Driven::Failed(failure) = end {
            self.tell(failure);
        }
        let Self { handler, source, ahead, block, .. } = self;
        // Releases it (A9). The producer has to be there until that is done.
        drop(handler);
        drop(block);
        drop(ahead);
        // It is over either way: a panic of the source's `Drop` has nobody left to tell.
        contain(|| drop(source)).ok();
    }
}

impl<S, B, E> Future for Drive<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Into<AsyncBatch>,
    E: Into<StreamFailure>,
{
    type Output = Driven;

    /// Polled again after it was done it gives the same answer.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Driven> {
        let end = match &mut self.0 {
            Ok(running) => ready!(running.poll(context)),
            Err(end) => return Poll::Ready(end.clone()),
        };
        if let Ok(running) = mem::replace(&mut self.0, Err(end.clone())) {
            running.finish(&end);
        }
        Poll::Ready(end)
    }
}

impl<S> Drop for Drive<S> {
    fn drop(&mut self) {
        let dropped = || StreamFailure::new(EIO, "the producer was dropped before the end of the stream");
        if let Ok(running) = mem::replace(&mut self.0, Err(Driven::Cancelled)) {
            let end = running.block.orders.stop().map_or_else(|| Driven::Failed(dropped()), stopped);
            running.finish(&end);
        }
    }
}

impl<S> fmt::Debug for Drive<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(running) => f.debug_struct("Drive").field("stage", &running.stage).finish_non_exhaustive(),
            Err(end) => f.debug_tuple("Drive").field(end).finish(),
        }
    }
}

/// An iterator as a [`Stream`] that always has an answer.
#[derive(Debug, Clone)]
pub struct IterStream<I>(I);

/// The iterator is never pinned.
impl<I> Unpin for IterStream<I> {}

impl<I: Iterator> Stream for IterStream<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}
