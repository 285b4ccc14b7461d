//! What a handler gets to see of a driven stream: its producer, and its tasks.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::fmt;
use core::mem;
use core::ptr::{self, NonNull};

use super::orders::Orders;
use crate::errno::EINVAL;
use crate::owned::OwnedDeviceArray;
use crate::raw::{ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceArray, ArrowDeviceType};
use crate::sync::{Mutex, lock};
use crate::view::MetadataBuf;

/// The producer, and what it points to. Lives until the handler is released (A1) and every task extracted: some
/// consumers still ask for more when they extract a task that they kept.
pub(super) struct Block {
    raw: UnsafeCell<ArrowAsyncProducer>,
    pub(super) orders: Orders,
    metadata: MetadataBuf,
}

// SAFETY: the producer struct is written before anybody has a pointer to it, and only read by consumers; the rest is made
// for several threads.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl Block {
    pub(super) fn new(device_type: ArrowDeviceType, metadata: MetadataBuf) -> Arc<Self> {
        let additional_metadata = metadata.as_ptr();
        let raw = ArrowAsyncProducer {
            device_type,
            request: Some(request),
            cancel: Some(cancel),
            additional_metadata,
            private_data: ptr::null_mut(),
        };
        let block = Arc::new(Self { raw: UnsafeCell::new(raw), orders: Orders::new(), metadata });
        let private_data = Arc::as_ptr(&block).cast_mut().cast();
        // SAFETY: nobody else has the block yet.
        unsafe { (*block.raw.get()).private_data = private_data };
        block
    }

    /// For the handler (A1).
    pub(super) fn producer(&self) -> *mut ArrowAsyncProducer {
        self.raw.get()
    }
}

/// # Safety
///
/// - `producer` is null or the one of a block that lives for `'a`.
unsafe fn orders<'a>(producer: *const ArrowAsyncProducer) -> Option<&'a Orders> {
    let producer = NonNull::new(producer.cast_mut())?.as_ptr();
    // SAFETY: not null, so a live producer.
    let block = unsafe { (*producer).private_data }.cast_const().cast::<Block>();
    // SAFETY: `Block::new` put it there, and it lives as long as its producer.
    unsafe { block.as_ref() }.map(|block| &block.orders)
}

unsafe extern "C" fn request(producer: *mut ArrowAsyncProducer, n: i64) {
    // SAFETY: the consumer passes the producer that it was given, before its release returns.
    if let Some(orders) = unsafe { orders(producer) } {
        orders.request(n);
    }
}

unsafe extern "C" fn cancel(producer: *mut ArrowAsyncProducer) {
    // SAFETY: as in `request`.
    if let Some(orders) = unsafe { orders(producer) } {
        orders.cancel();
    }
}

/// A batch on its way: the driver and the task have one reference each while the task is passed, then only the task.
pub(super) struct Slot {
    /// Gone once it is extracted, or refused.
    array: Mutex<Option<OwnedDeviceArray>>,
    _block: Arc<Block>,
}

impl Slot {
    /// The slot, and a task that extracts what is in it.
    pub(super) fn new(array: OwnedDeviceArray, block: &Arc<Block>) -> (Arc<Self>, ArrowAsyncTask) {
        let slot = Arc::new(Self { array: Mutex::new(Some(array)), _block: Arc::clone(block) });
        let private_data = Arc::into_raw(Arc::clone(&slot)).cast_mut().cast();
        (slot, ArrowAsyncTask { extract_data: Some(extract_data), private_data })
    }

    /// After the handler refused the task: whatever is not extracted by now is freed.
    ///
    /// # Safety
    ///
    /// - `self` is the slot of a task of `new`, and who refused the task does not extract it any more.
    pub(super) unsafe fn refused(self: Arc<Self>) {
        let unextracted = lock(&self.array).take();
        if let Some(array) = unextracted {
            let task = Arc::into_raw(self);
            // SAFETY: the reference of the task, which nobody has taken back and nobody will.
            unsafe { Arc::decrement_strong_count(task) };
            // SAFETY: the driver's own, from above.
            drop(unsafe { Arc::from_raw(task) });
            drop(array);
        }
    }
}

/// A10: moves the batch out, or releases it if there is nowhere to move it to; called once a task, on any thread.
unsafe extern "C" fn extract_data(task: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int {
    if task.is_null() {
        return EINVAL;
    }
    // A second call by the same struct finds nothing; one by another copy cannot be told from the first.
    // SAFETY: not null, so a task of `Slot::new` or a copy of one, and the consumer's.
    let slot = unsafe { mem::replace(&mut (*task).private_data, ptr::null_mut()) };
    if slot.is_null() {
        return EINVAL;
    }
    // SAFETY: the task's reference, taken back by the one call that there is.
    let slot = unsafe { Arc::from_raw(slot.cast_const().cast::<Slot>()) };
    let array = lock(&slot.array).take();
    match array {
        None => return EINVAL,
        Some(array) if out.is_null() => drop(array),
        // SAFETY: not null, so valid for writes.
        Some(array) => unsafe { array.export_to(out) },
    }
    0
}
