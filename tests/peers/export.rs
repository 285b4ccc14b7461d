//! What leaves Rust: the structs as they came, or new ones from the crate's producer around the same buffers.

use core::ffi::c_int;
use core::sync::atomic::AtomicI64;
use core::sync::atomic::Ordering::Relaxed;

use arrow_device_abi::{
    ArrayView, Device, ExportError, ExportErrorKind, ExportEvent, OwnedArray, OwnedDeviceArray, OwnedSchema,
    SyncEvent,
};

use crate::allocations::counting;
use crate::describe::Error;
use crate::made::{self, SCHEMA, Variant};
use crate::trees::{ArrayTree, SchemaTree};

static LIVE: AtomicI64 = AtomicI64::new(0);

/// See `cpp_peer.h`.
#[unsafe(no_mangle)]
pub extern "C" fn peer_live() -> i64 {
    LIVE.load(Relaxed)
}

/// A part of a keep-alive: is counted from its making to its drop.
#[derive(Debug)]
pub struct Held(());

impl Held {
    pub fn new() -> Self {
        LIVE.fetch_add(1, Relaxed);
        Self(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Relaxed);
    }
}

/// `PeerHow` of `cpp_peer.h`.
#[derive(Debug, Clone, Copy)]
pub enum How {
    AsItCame,
    Anew,
    Cloned,
}

impl How {
    pub fn new(how: c_int) -> Result<Self, Error> {
        Ok(match how {
            0 => Self::AsItCame,
            1 => Self::Anew,
            2 => Self::Cloned,
            _ => return Err(format!("no such way: {how}").into()),
        })
    }
}

/// What failed; what was to be kept is dropped.
fn kind<K>(error: ExportError<K>) -> ExportErrorKind {
    error.kind
}

/// What `export` gives, if it took one allocation and no more.
fn in_one_allocation<T>(export: impl FnOnce() -> Result<T, ExportErrorKind>) -> Result<T, Error> {
    match counting(export) {
        (Ok(exported), 1) => Ok(exported),
        (Ok(_), count) => Err(format!("{count} allocations for one tree").into()),
        (Err(error), _) => Err(error.into()),
    }
}

pub fn schema(schema: OwnedSchema, how: How) -> Result<OwnedSchema, Error> {
    match how {
        How::AsItCame => Ok(schema),
        How::Anew => SchemaTree::of(schema.view()?)?.with_node(|node| in_one_allocation(|| node.export())),
        How::Cloned => in_one_allocation(|| schema.try_clone()),
    }
}

/// What consumers of the new array have to wait for: what those of the old one had to.
fn event(array: &OwnedDeviceArray) -> Result<ExportEvent, Error> {
    Ok(match array.sync_event()? {
        None => ExportEvent::Synchronized,
        // SAFETY: points to a handle as long as the array lives (D11).
        Some(SyncEvent::Cuda(handle)) => ExportEvent::Handle(unsafe { handle.as_ptr().read() }),
        Some(other) => return Err(format!("nobody here has events like {other:?}").into()),
    })
}

pub fn device_array(array: OwnedDeviceArray, how: How) -> Result<OwnedDeviceArray, Error> {
    match how {
        How::AsItCame => Ok(array),
        How::Anew => {
            let device = array.device();
            // SAFETY: the array is on its own device.
            unsafe { device_array_on(array, device) }
        }
        How::Cloned => Err("arrays are not cloned".into()),
    }
}

/// The array in new structs which say that it is on `device`.
///
/// # Safety
///
/// - It is on `device`, or nobody touches the buffers of the result.
pub unsafe fn device_array_on(array: OwnedDeviceArray, device: Device) -> Result<OwnedDeviceArray, Error> {
    // SAFETY: a live array, or one that the view refuses; nobody changes or releases it while it is described. Only
    // the structs are read, for which nothing has to be waited for.
    let tree = ArrayTree::of(unsafe { ArrayView::from_raw(&array.as_raw().array) }?)?;
    let event = event(&array)?;
    let keep = (array, Held::new());
    // SAFETY: the description of a live array of the same type, and its event; both live until it is released, which
    // happens when it is dropped. The device is as the caller promises.
    tree.with_node(|node| in_one_allocation(|| unsafe { node.export_on(device, event, keep) }.map_err(kind)))
}

pub fn host_array(array: OwnedArray, how: How) -> Result<OwnedArray, Error> {
    match how {
        How::AsItCame => Ok(array),
        How::Anew => {
            let tree = ArrayTree::of(array.view()?)?;
            let keep = (array, Held::new());
            // SAFETY: the description of a live array of the same type, which is released when it is dropped.
            tree.with_node(|node| in_one_allocation(|| unsafe { node.export(keep) }.map_err(kind)))
        }
        How::Cloned => Err("arrays are not cloned".into()),
    }
}

pub fn made_schema() -> Result<OwnedSchema, ExportErrorKind> {
    SCHEMA.export()
}

/// Data of Rust's own.
pub fn made(variant: Variant) -> Result<OwnedDeviceArray, Error> {
    let (tree, memory) = made::batch(variant);
    let keep = (memory, Held::new());
    let schema = SCHEMA.export()?;
    tree.with_node(|node| {
        node.fits(schema.view()?)?;
        in_one_allocation(|| {
            // SAFETY: the tree is one of this schema, and describes the memory that is kept, which is written.
            unsafe { node.export_on(Device::CPU, ExportEvent::Synchronized, keep) }.map_err(kind)
        })
    })
}
