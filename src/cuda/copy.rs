//! Copies between the host and a CUDA device.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::fmt;
use core::mem;
use core::ptr;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{CUdeviceptr, CUstream};

use super::block::Block;
use super::context::Current;
use super::driver::{CudaError, call, check_device, require};
use super::event::{Event, not_capturing, settle};
use super::record::{CudaExport, CudaExportError, CudaExportErrorKind};
use super::reuse::{InUse, InUseError};
use crate::consumer::{EventWaiter, Invalid, NoWait, Readiness, ReadyDeviceArray};
use crate::copy::{CopyError, CopyOptions, DeviceMemory, HostMemory, NotForTheHost, Offsets, Plan, Transfer};
use crate::device::{Device, SyncEvent};
use crate::owned::OwnedDeviceArray;
use crate::producer::ExportErrorKind;
use crate::view::SchemaView;

/// How many bytes are copied before somebody is told.
const STEP: usize = 1 << 26;

/// The memory of CUDA devices, and what they share with the host: `CUDA`, `CUDA_HOST` and `CUDA_MANAGED`.
///
/// The copies are queued on this stream, all together, and then waited for. For an array that is
/// [`Readiness::Queued`] on whichever stream, this one is made to wait for its event; a child that was moved out of such
/// an array has none, and is refused with [`CudaError::NoEvent`].
// SAFETY: takes only arrays in memory that the driver can copy, whose work is done or made to be done before what is
// queued on this stream. `copy_to_host` returns only after the last copy, or after all that was queued if it fails or
// somebody panics.
unsafe impl DeviceMemory for CudaStream {
    type Error = CudaError;

    fn accept(
        &self,
        device: Device,
        readiness: Readiness,
        event: Option<SyncEvent<'_>>,
    ) -> Result<(), CudaError> {
        check_device(device)?;
        match (readiness, event) {
            (Readiness::Complete, _) => Ok(()),
            (Readiness::Queued, Some(event)) => EventWaiter::wait(self, device, event).map(drop),
            (Readiness::Queued, None) => Err(CudaError::NoEvent),
        }
    }

    unsafe fn copy_to_host(
        &self,
        transfers: &[Transfer],
        finished: &mut dyn FnMut(usize),
    ) -> Result<(), CudaError> {
        let current = Current::enter(self.context().cu_ctx())?;
        let mut copies = Copies::begin(self)?;
        copies.queue(transfers, |to, from, bytes, stream| {
            // SAFETY: memory of the device and of the host, this long and valid until `copies` is done, as the caller
            // promises. The context is current.
            unsafe { call!(cuMemcpyDtoHAsync_v2(to, from.addr() as CUdeviceptr, bytes, stream)) }
        })?;
        drop(current);
        copies.wait(finished)
    }
}

/// Copies that are queued on a stream, and not let go of before they are done.
struct Copies<'a> {
    stream: &'a CudaStream,
    /// Fire when so many bytes more are copied.
    marks: Vec<(Event, usize)>,
    /// Whether something is queued that was not waited for.
    pending: bool,
}

impl<'a> Copies<'a> {
    /// The stream's context is current.
    fn begin(stream: &'a CudaStream) -> Result<Self, CudaError> {
        require()?;
        not_capturing(stream.cu_stream())?;
        Ok(Self { stream, marks: Vec::new(), pending: false })
    }

    fn queue(
        &mut self,
        transfers: &[Transfer],
        copy: impl Fn(*mut c_void, *const c_void, usize, CUstream) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let mut unmarked = 0_usize;
        for Transfer { from, to, bytes } in transfers.iter().copied() {
            let mut at = 0;
            while at < bytes {
                let step = STEP.min(bytes.wrapping_sub(at));
                self.pending = true;
                copy(to.wrapping_byte_add(at), from.wrapping_byte_add(at), step, self.stream.cu_stream())?;
                at = at.wrapping_add(step);
                unmarked = unmarked.saturating_add(step);
                if unmarked >= STEP {
                    self.marks.push((Event::record(self.stream)?, mem::take(&mut unmarked)));
                }
            }
        }
        if unmarked > 0 {
            self.marks.push((Event::record(self.stream)?, unmarked));
        }
        Ok(())
    }

    /// Waits for each mark on the host, and tells `finished`.
    fn wait(mut self, finished: &mut dyn FnMut(usize)) -> Result<(), CudaError> {
        for (event, bytes) in &self.marks {
            event.wait()?;
            finished(*bytes);
        }
        self.pending = false;
        Ok(())
    }

    /// Leaves the copies to the stream.
    fn leave(mut self) {
        self.pending = false;
    }
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        if self.pending && !settle(self.stream) && !self.marks.last().is_some_and(|(event, _)| event.settle())
        {
            // Copies go on into memory that is about to be freed, and whoever began to capture a graph meanwhile keeps
            // anybody from waiting for them.
            std::process::abort();
        }
    }
}

/// Copies an array that the host can read to the stream's device.
///
/// Gives the array there, of type `CUDA`, with an event that fires when it is written: one tree, with all buffers in one
/// block of device memory, each at a multiple of 64 bytes and filled up with zeros to one. It is released like any other
/// exported array. And gives the array on the host, which the copies still read: it is released when they are done
/// ([`InUse`]), or dropped to wait for them.
///
/// The structure is [checked](crate::OwnedArray::validate) first. With [`Offsets::Trim`] a trimmed copy is made on the
/// host before. The copies are only queued, unless somebody is to be told how far they are: then the host waits for
/// them.
///
/// # Errors
///
/// A [`ToDeviceError`] that gives the array back; nothing of it is left on the device, and nothing queued reads it.
///
/// # Safety
///
/// - As for [`to_host`](ReadyDeviceArray::to_host): `schema` is the array's own (D15).
#[allow(clippy::result_large_err, reason = "the error gives the array back")]
pub unsafe fn to_device(
    array: ReadyDeviceArray,
    schema: SchemaView<'_>,
    stream: &Arc<CudaStream>,
    mut options: CopyOptions<'_>,
) -> Result<(OwnedDeviceArray, InUse), ToDeviceError> {
    if options.offsets == Offsets::Trim {
        let trim = CopyOptions { progress: None, ..CopyOptions::new().limits(options.limits).trimmed() };
        // SAFETY: as the caller promises.
        let trimmed = match unsafe { array.to_host(schema, &HostMemory, trim) } {
            Ok(trimmed) => OwnedDeviceArray::from(trimmed).synchronize(&NoWait),
            Err(error) => return Err(ToDeviceError { array, kind: error.into() }),
        };
        options.offsets = Offsets::Keep;
        return match trimmed {
            // SAFETY: a copy of an array is one of the same schema.
            Ok(trimmed) => unsafe { to_device(trimmed, schema, stream, options) }
                .map_err(|error| ToDeviceError { array, kind: error.kind }),
            // A host array has no event that could not be waited for.
            Err(_) => Err(ToDeviceError { array, kind: ToDeviceErrorKind::Cuda(CudaError::NoEvent) }),
        };
    }
    // SAFETY: as the caller promises.
    match unsafe { upload(&array, schema, stream, options) } {
        Ok(copy) => match InUse::until_done(array, stream) {
            Ok(in_use) => Ok((copy, in_use)),
            Err(InUseError { array, error }) => {
                // The copies were waited for.
                Err(ToDeviceError { array, kind: ToDeviceErrorKind::Cuda(error) })
            }
        },
        Err(kind) => Err(ToDeviceError { array, kind }),
    }
}

/// Queues the copies into a block of device memory, and exports it.
///
/// # Safety
///
/// - `schema` is the array's own.
unsafe fn upload(
    array: &ReadyDeviceArray,
    schema: SchemaView<'_>,
    stream: &Arc<CudaStream>,
    options: CopyOptions<'_>,
) -> Result<OwnedDeviceArray, ToDeviceErrorKind> {
    let CopyOptions { offsets, limits, mut progress } = options;
    // SAFETY: as the caller promises.
    let plan = unsafe { Plan::new(array, schema, &HostMemory, offsets, &limits) }?;
    require()?;
    let current = Current::enter(stream.context().cu_ctx())?;
    let block = Block::zeroed(stream, plan.block_bytes())?;
    #[allow(clippy::cast_possible_truncation, reason = "CUDA's pointers are no wider than the platform's")]
    let base: *mut u8 = ptr::without_provenance_mut(block.address() as usize);
    // After the block, so that whatever fails the copies into it are done before it goes.
    let mut copies = Copies::begin(stream)?;
    let transfers = plan.transfers::<NotForTheHost>(base)?;
    copies.queue(&transfers, |to, from, bytes, stream| {
        // SAFETY: `to` is inside the block, `from` is a buffer of the host's array with as many bytes, by the plan. Both
        // are there until the copies are done: the block is freed after them, by `copies` or in the stream's order, and
        // the array is borrowed from `to_device`, which puts it behind them. The context is current.
        unsafe { call!(cuMemcpyHtoDAsync_v2(to.addr() as CUdeviceptr, from, bytes, stream)) }
    })?;
    let mut block = Some(block);
    let exported = plan.with_node::<_, NotForTheHost>(base, |node| {
        let block = block.take();
        // SAFETY: the node is one of the array's own type; its buffers are in the block, which is kept, and written by
        // what is queued on the stream.
        unsafe { CudaExport::new(stream).export(node, block) }
    });
    let copy = match exported {
        Ok(Ok(copy)) => copy,
        Ok(Err(CudaExportError { keep, kind })) => {
            drop(copies);
            drop(keep);
            return Err(kind.into());
        }
        Err(error) => {
            drop(copies);
            return Err(error.into());
        }
    };
    drop(current);
    if let Some(progress) = &mut progress {
        let (mut done, total) = (0_usize, plan.bytes_to_copy());
        copies.wait(&mut |bytes| {
            done = done.saturating_add(bytes);
            progress(done.min(total), total);
        })?;
        if total == 0 {
            progress(0, 0);
        }
    } else {
        copies.leave();
    }
    Ok(copy)
}

/// An array could not be copied to the device. Here it is back.
#[derive(Debug)]
pub struct ToDeviceError {
    /// The array on the host, as it was.
    pub array: ReadyDeviceArray,
    /// What failed.
    pub kind: ToDeviceErrorKind,
}

/// What failed when an array was to be copied to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToDeviceErrorKind {
    /// The host cannot read the array, or has not waited for it.
    NotForTheHost(NotForTheHost),
    /// The array is not what its schema says, or an offset in its buffers is none.
    Invalid(Invalid),
    /// Host memory could not be allocated.
    OutOfMemory,
    /// The driver refused something, such as the memory.
    Cuda(CudaError),
    /// The copy could not be exported.
    Export(ExportErrorKind),
}

impl From<CopyError<NotForTheHost>> for ToDeviceErrorKind {
    fn from(error: CopyError<NotForTheHost>) -> Self {
        match error {
            CopyError::Invalid(invalid) => Self::Invalid(invalid),
            CopyError::Memory(error) => Self::NotForTheHost(error),
            CopyError::OutOfMemory => Self::OutOfMemory,
            CopyError::Export(kind) => Self::Export(kind),
        }
    }
}

impl From<CudaError> for ToDeviceErrorKind {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error)
    }
}

impl From<CudaExportErrorKind> for ToDeviceErrorKind {
    fn from(kind: CudaExportErrorKind) -> Self {
        match kind {
            CudaExportErrorKind::Cuda(error) => Self::Cuda(error),
            CudaExportErrorKind::Export(ExportErrorKind::OutOfMemory) => Self::OutOfMemory,
            CudaExportErrorKind::Export(kind) => Self::Export(kind),
        }
    }
}

impl fmt::Display for ToDeviceErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotForTheHost(error) => error.fmt(f),
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::OutOfMemory => f.write_str("out of memory"),
            Self::Cuda(error) => write!(f, "copying to the device failed: {error}"),
            Self::Export(kind) => kind.fmt(f),
        }
    }
}

impl fmt::Display for ToDeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl core::error::Error for ToDeviceErrorKind {}
impl core::error::Error for ToDeviceError {}
