//! Whole streams: moved on, taken apart on another thread, and made by the crate's producer.

use core::ffi::c_int;
use core::iter;
use std::io;

use arrow_device_abi::raw::{ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType};
use arrow_device_abi::{
    ArrayStreamReader, Device, DeviceArrayStreamReader, NoWait, Owned, OwnedArrayStream,
    OwnedDeviceArrayStream, StreamError, StreamFailure, StreamReader, StreamStruct, errno,
};

use crate::export::{self, Held, How};
use crate::made::Variant;
use crate::{PeerText, describe};

/// `PeerFailure` of `cpp_peer.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeerFailure {
    after: i64,
    kind: c_int,
    code: c_int,
}

const FAILS: c_int = 1;
const FAILS_AS_THE_SYSTEM: c_int = 2;
const PANICS: c_int = 3;
const LEAVES_THE_DEVICE: c_int = 4;

impl PeerFailure {
    /// Ends a stream after `given` batches, if this is the place.
    fn at(self, given: i64) -> Result<(), StreamFailure> {
        match self.kind {
            _ if given != self.after => Ok(()),
            FAILS => Err(StreamFailure::new(self.code, &format!("relé stopped after {given} batches"))),
            FAILS_AS_THE_SYSTEM => Err(io::Error::from_raw_os_error(self.code).into()),
            // As a panic would, but without a report on standard error.
            PANICS => std::panic::resume_unwind(Box::new(format!("relé panicked after {given} batches"))),
            _ => Ok(()),
        }
    }

    fn leaves_the_device(self, given: i64) -> bool {
        self.kind == LEAVES_THE_DEVICE && given == self.after
    }
}

fn passed_on(error: StreamError) -> StreamFailure {
    StreamFailure::new(error.errno(), &error.message().map_or_else(|| error.to_string(), str::to_owned))
}

fn impossible(error: describe::Error) -> StreamFailure {
    StreamFailure::new(errno::EINVAL, &error.to_string())
}

/// The batches of `source`, until `failure` or its own.
fn relayed<S: StreamStruct>(
    mut source: StreamReader<S>,
    failure: PeerFailure,
    export: impl Fn(Owned<S::Array>, i64) -> Result<Owned<S::Array>, describe::Error>,
) -> impl Iterator<Item = Result<Owned<S::Array>, StreamFailure>> {
    let held = Held::new();
    let mut given = 0;
    iter::from_fn(move || {
        // Dropped with the iterator.
        let _ = &held;
        let mut next = || {
            failure.at(given)?;
            let array = source.next_array().map_err(passed_on)?;
            array.map(|array| export(array, given).map_err(impossible)).transpose()
        };
        let next = next().transpose();
        given += 1;
        next
    })
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `stream` is null or obeys the C device stream interface; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_relay(
    stream: *mut ArrowDeviceArrayStream,
    how: c_int,
    failure: PeerFailure,
    out: *mut ArrowDeviceArrayStream,
    text: PeerText,
) -> c_int {
    // SAFETY: null or a stream that the caller gives away.
    let stream = unsafe { OwnedDeviceArrayStream::take(stream) };
    let relay = || {
        let how = How::new(how)?;
        let mut source = DeviceArrayStreamReader::new(stream?);
        let device_type = source.device_type();
        let schema = export::schema(source.schema()?, how)?;
        let batches = relayed(source, failure, move |array, given| {
            if failure.leaves_the_device(given) {
                // SAFETY: the stream, which is of another device type, releases the array instead of giving it out.
                unsafe { export::device_array_on(array, Device::new(ArrowDeviceType::EXT_DEV, 0)) }
            } else {
                export::device_array(array, how)
            }
        });
        // SAFETY: the arrays are of this schema.
        Ok::<_, describe::Error>(unsafe { OwnedDeviceArrayStream::from_iter(device_type, schema, batches) })
    };
    match relay() {
        Ok(relay) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { relay.export_to(out) };
            0
        }
        Err(error) => text.refuse(error),
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `stream` is null or obeys the C stream interface; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_relay_host(
    stream: *mut ArrowArrayStream,
    how: c_int,
    failure: PeerFailure,
    out: *mut ArrowArrayStream,
    text: PeerText,
) -> c_int {
    // SAFETY: null or a stream that the caller gives away.
    let stream = unsafe { OwnedArrayStream::take(stream) };
    let relay = || {
        let how = How::new(how)?;
        let mut source = ArrayStreamReader::new(stream?);
        let schema = export::schema(source.schema()?, how)?;
        let batches = relayed(source, failure, move |array, _| export::host_array(array, how));
        // SAFETY: the arrays are of this schema.
        Ok::<_, describe::Error>(unsafe { OwnedArrayStream::from_iter(schema, batches) })
    };
    match relay() {
        Ok(relay) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { relay.export_to(out) };
            0
        }
        Err(error) => text.refuse(error),
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_produce(out: *mut ArrowDeviceArrayStream, text: PeerText) -> c_int {
    let batches = Variant::ALL.into_iter().map(|variant| export::made(variant).map_err(impossible));
    match export::made_schema() {
        Ok(schema) => {
            // SAFETY: the arrays are of this schema.
            let stream = unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CPU, schema, batches) };
            // SAFETY: valid for writes as the caller promises.
            unsafe { stream.export_to(out) };
            0
        }
        Err(error) => text.refuse(error),
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `stream` is null or obeys the C device stream interface; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_pass_on(
    stream: *mut ArrowDeviceArrayStream,
    out: *mut ArrowDeviceArrayStream,
    text: PeerText,
) -> c_int {
    // SAFETY: null or a stream that the caller gives away.
    match unsafe { OwnedDeviceArrayStream::take(stream) } {
        Ok(stream) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { stream.export_to(out) };
            0
        }
        Err(error) => text.refuse(error),
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `stream` is null or obeys the C device stream interface; `batches` and `rows` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_drain_on_thread(
    stream: *mut ArrowDeviceArrayStream,
    batches: *mut i64,
    rows: *mut i64,
    text: PeerText,
) -> c_int {
    // SAFETY: null or a stream that the caller gives away; Arrow C++'s can be read from any thread.
    let reader = match unsafe { OwnedDeviceArrayStream::take(stream) } {
        Ok(stream) => DeviceArrayStreamReader::new(stream),
        Err(error) => return text.refuse(error),
    };
    let drained = std::thread::spawn(move || {
        let mut counts = (0, 0);
        for batch in reader {
            let batch = batch.map_err(|error| error.to_string())?;
            let ready = batch.synchronize(&NoWait).map_err(|error| error.to_string())?;
            let length = ready.view().map_err(|error| error.to_string())?.length();
            counts = (counts.0 + 1, counts.1 + i64::try_from(length).map_err(|error| error.to_string())?);
        }
        Ok::<_, String>(counts)
    })
    .join();
    match drained {
        Ok(Ok(counts)) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { *batches = counts.0 };
            // SAFETY: as above.
            unsafe { *rows = counts.1 };
            0
        }
        Ok(Err(why)) => text.refuse(why),
        Err(_) => text.refuse("the thread panicked"),
    }
}

/// See `cpp_peer.h`.
///
/// # Safety
///
/// - `stream` is null or obeys the C stream interface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn peer_describe_host(stream: *mut ArrowArrayStream, text: PeerText) -> c_int {
    // SAFETY: null or a stream that the caller gives away.
    match unsafe { OwnedArrayStream::take(stream) }.map_err(Into::into).and_then(describe_host) {
        Ok(description) => {
            text.put(&description);
            0
        }
        Err(error) => text.refuse(error),
    }
}

fn describe_host(stream: OwnedArrayStream) -> Result<String, describe::Error> {
    let mut reader = ArrayStreamReader::new(stream);
    let schema = reader.schema()?;
    let mut description = String::new();
    describe::schema(&mut description, schema.view()?)?;
    for array in reader {
        // SAFETY: arrays of a host stream are in host memory, complete.
        unsafe { describe::array(&mut description, schema.view()?, array?.view()?) }?;
    }
    Ok(description)
}
