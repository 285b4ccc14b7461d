//! For a producer: exports with an event that covers the work that wrote the buffers.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::fmt;
use core::mem::ManuallyDrop;

use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DriverError};

use super::context::{Current, Inside};
use super::driver::{CudaError, require};
use super::event::Event;
use crate::device::Device;
use crate::owned::OwnedDeviceArray;
use crate::producer::{ArrayNode, ExportError, ExportErrorKind, ExportEvent};
use crate::raw::ArrowDeviceType;

/// Exports an array on a CUDA device, with an event that fires when the work is done that wrote it (D6).
///
/// The event has timing disabled (C21), is made in the stream's context (C13), and covers what is queued on the stream,
/// and on every stream that was [named](Self::after) or that a [buffer](Self::buffer) was allocated on, when the array is
/// exported (C17).
///
/// ```no_run
/// use std::sync::Arc;
///
/// use arrow_device_abi::cuda::CudaExport;
/// use arrow_device_abi::{ArrayNode, OwnedDeviceArray};
/// use cudarc::driver::{CudaSlice, CudaStream};
///
/// /// An int32 array without nulls.
/// fn export(stream: &Arc<CudaStream>, values: CudaSlice<i32>) -> Result<OwnedDeviceArray, Box<dyn std::error::Error>> {
///     let mut export = CudaExport::new(stream);
///     let buffers = [std::ptr::null(), export.buffer(&values)?];
///     let node = ArrayNode { length: values.len().try_into()?, buffers: &buffers, ..Default::default() };
///     // SAFETY: an int32 array has these buffers; the second is as long, and lives as long as `values`, which is kept.
///     Ok(unsafe { export.export(&node, values) }.map_err(|error| error.kind)?)
/// }
/// ```
#[derive(Debug)]
pub struct CudaExport<'a> {
    stream: &'a Arc<CudaStream>,
    device_type: ArrowDeviceType,
    /// Streams that wrote, too.
    writers: Vec<Arc<CudaStream>>,
}

impl<'a> CudaExport<'a> {
    /// Of `CUDA` memory of the stream's device; the event is recorded on `stream`.
    #[must_use]
    pub const fn new(stream: &'a Arc<CudaStream>) -> Self {
        Self { stream, device_type: ArrowDeviceType::CUDA, writers: Vec::new() }
    }

    /// Of another type of memory: `CUDA_HOST` or `CUDA_MANAGED`.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotCuda`] if arrays on this type of device have no CUDA event.
    pub fn of_type(self, device_type: ArrowDeviceType) -> Result<Self, CudaError> {
        match device_type {
            ArrowDeviceType::CUDA | ArrowDeviceType::CUDA_HOST | ArrowDeviceType::CUDA_MANAGED => {
                Ok(Self { device_type, ..self })
            }
            _ => Err(CudaError::NotCuda(self.device_of(device_type))),
        }
    }

    /// Covers what is queued on `writer`, too, when the array is exported.
    ///
    /// The per-thread default stream is another one on each thread: it is that of the thread that exports.
    pub fn after(&mut self, writer: &Arc<CudaStream>) {
        if writer != self.stream && !self.writers.contains(writer) {
            self.writers.push(Arc::clone(writer));
        }
    }

    /// The device pointer of a `CudaSlice`, `CudaView` or any other memory of cudarc's, for
    /// [`ArrayNode::buffers`](ArrayNode::buffers). Nothing is copied.
    ///
    /// The writes that cudarc knows of are waited for on the stream, and what is queued on the memory's own stream is
    /// [covered](Self::after). The pointer is valid as long as the memory, which is to be kept alive with the array.
    ///
    /// # Errors
    ///
    /// [`CudaError::Driver`] if the wait cannot be queued, or if cudarc has an error in store of a call that could not
    /// report it.
    pub fn buffer<T>(&mut self, memory: &impl DevicePtr<T>) -> Result<*const c_void, CudaError> {
        require()?;
        let context = self.stream.context();
        let _current = Current::enter(context.cu_ctx())?;
        stored_error(context)?;
        let (pointer, read) = memory.device_ptr(self.stream);
        // Notes that the stream reads the memory, from which cudarc concludes when it may be written or freed.
        drop(read);
        stored_error(context)?;
        self.after(memory.stream());
        #[allow(
            clippy::cast_possible_truncation,
            reason = "CUDA's pointers are no wider than the platform's"
        )]
        Ok(core::ptr::without_provenance(pointer as usize))
    }

    /// Records the event and exports the tree with it.
    ///
    /// `keep` is what the memory belongs to. It is dropped when the last node of the tree is released, on whatever thread
    /// that is, with the stream's context current; then the event is destroyed; then the thread's own context is current
    /// again.
    ///
    /// # Errors
    ///
    /// A [`CudaExportError`] that gives `keep` back if the driver refuses or a number of any node is impossible. Nothing
    /// was exported then, and the event is destroyed.
    ///
    /// # Safety
    ///
    /// - Every node is one of a type that the consumer will be told, by its schema: as many buffers, as long, with such
    ///   contents, and as many children.
    /// - The buffers are memory of this type on the stream's device, or null where they may be; they stay valid until
    ///   `keep` is dropped, and unchanged once the work is done that is queued on the streams covered (D14).
    pub unsafe fn export<K: Send + 'static>(
        self,
        node: &ArrayNode<'_>,
        keep: K,
    ) -> Result<OwnedDeviceArray, CudaExportError<K>> {
        let event = match self.record() {
            Ok(event) => event,
            Err(error) => return Err(CudaExportError { keep, kind: CudaExportErrorKind::Cuda(error) }),
        };
        let handle = ExportEvent::Handle(event.handle().cast());
        let kept = Kept { parts: ManuallyDrop::new((keep, event)) };
        // SAFETY: of nodes and buffers as the caller promises; the event fires after the work that writes them, and is
        // kept, too.
        unsafe { node.export_on(self.device_of(self.device_type), handle, kept) }.map_err(
            |ExportError { keep, kind }| CudaExportError {
                keep: keep.into_inner(),
                kind: CudaExportErrorKind::Export(kind),
            },
        )
    }

    fn device_of(&self, device_type: ArrowDeviceType) -> Device {
        let ordinal = self.stream.context().ordinal();
        Device::new(device_type, i64::try_from(ordinal).unwrap_or(i64::MAX))
    }

    fn record(&self) -> Result<Event, CudaError> {
        for writer in &self.writers {
            Event::record(writer)?.hold_back(self.stream)?;
        }
        Event::record(self.stream)
    }
}

/// cudarc keeps the errors of calls that could not report them, for whoever asks next.
fn stored_error(context: &CudaContext) -> Result<(), CudaError> {
    let named = |error: DriverError| CudaError::Driver { call: "a call that cudarc made", error };
    context.check_err().map_err(named)
}

/// The memory's owner and the event, dropped in this order with the event's context current, on whatever thread.
struct Kept<K> {
    parts: ManuallyDrop<(K, Event)>,
}

impl<K> Kept<K> {
    /// The owner back; the event is destroyed.
    fn into_inner(self) -> K {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped or used again.
        let (keep, event) = unsafe { ManuallyDrop::take(&mut this.parts) };
        drop(event);
        keep
    }
}

impl<K> Drop for Kept<K> {
    fn drop(&mut self) {
        // Goes last, also if the owner's drop panics.
        let _inside = Inside::new(Arc::clone(self.parts.1.owner()));
        // SAFETY: dropped only here, and not used again.
        unsafe { ManuallyDrop::drop(&mut self.parts) };
    }
}

/// Exporting failed, and nothing was made of it. Here is what was to be kept back.
pub struct CudaExportError<K> {
    /// What the memory belongs to.
    pub keep: K,
    /// What failed.
    pub kind: CudaExportErrorKind,
}

/// What failed when device memory was to be exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CudaExportErrorKind {
    /// The event could not be recorded.
    Cuda(CudaError),
    /// The tree could not be made.
    Export(ExportErrorKind),
}

impl fmt::Display for CudaExportErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(error) => write!(f, "the event of the array could not be recorded: {error}"),
            Self::Export(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CudaExportErrorKind {}

impl<K> fmt::Debug for CudaExportError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaExportError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<K> fmt::Display for CudaExportError<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl<K> core::error::Error for CudaExportError<K> {}
