//! A peer that is not ours, in both roles: nanoarrow's CUDA device, in C, on the same driver for tests.
//!
//! `ci/cuda_peer.sh` builds the library of `peer/nanoarrow_cuda.c`, and names it in `NANOARROW_CUDA`.
//!
//! nanoarrow releases an array in whatever context is current on the thread, and does not look whether the driver
//! refuses to free the memory and the event because there is none. So a context is current here wherever that happens.

use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{ptr, slice};

use arrow_device_abi::cuda::{CudaExport, HostWait, InUse};
use arrow_device_abi::raw::{ArrowDeviceArray, ArrowDeviceType};
use arrow_device_abi::{ArrayNode, ArrayView, Device, ExportEvent, OwnedDeviceArray, Readiness};
use arrow_device_abi_cuda_tests::{CONTEXTS, Driver, copy_out, pointer};
use arrow_device_abi_support::skip;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, PinnedHostSlice, sys};
use libloading::Library;

/// nanoarrow builds and copies an array in less than this, also on a busy machine.
const LATE: Duration = Duration::from_millis(150);
/// Not the first, to which a mistake would lead.
const DEVICE: usize = 1;

const INT32: &CStr = c"i";
const STRING: &CStr = c"u";
/// nanoarrow's device code has no managed memory.
const TYPES: [ArrowDeviceType; 2] = [ArrowDeviceType::CUDA, ArrowDeviceType::CUDA_HOST];
const EACH: [(&CStr, ArrowDeviceType); 4] =
    [(INT32, TYPES[0]), (INT32, TYPES[1]), (STRING, TYPES[0]), (STRING, TYPES[1])];
const ROWS: usize = 96;

/// The buffers of the array of a format, by the rule that `peer/nanoarrow_cuda.c` has too.
fn contents(format: &CStr) -> Vec<Vec<u8>> {
    let mut validity = vec![0; ROWS / 8];
    let (mut numbers, mut offsets, mut text) = (Vec::new(), 0_i32.to_le_bytes().to_vec(), String::new());
    for row in 0..ROWS {
        let number = if is_null(row) { 0 } else { 1001 * row as i32 - 7 };
        if !is_null(row) {
            validity[row / 8] |= 1 << (row % 8);
            text += &number.to_string();
        }
        numbers.extend(number.to_le_bytes());
        offsets.extend((text.len() as i32).to_le_bytes());
    }
    if format == INT32 { vec![validity, numbers] } else { vec![validity, offsets, text.into_bytes()] }
}

fn is_null(row: usize) -> bool {
    row % 5 == 3
}

fn nulls() -> usize {
    (0..ROWS).filter(|&row| is_null(row)).count()
}

/// The buffers of an array, of which `copy` reads so many bytes.
fn buffers(
    view: &ArrayView<'_>,
    format: &CStr,
    copy: impl Fn(*const c_void, usize) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    assert_eq!((view.length(), view.null_count()), (ROWS, Some(nulls())));
    let [validity, second, ref data @ ..] = *view.buffers() else { panic!("too few buffers") };
    let validity = copy(validity, ROWS / 8);
    if format == INT32 {
        assert_eq!(data.len(), 0);
        return vec![validity, copy(second, 4 * ROWS)];
    }
    let offsets = copy(second, 4 * (ROWS + 1));
    let end = i32::from_le_bytes(*offsets.last_chunk().expect("an offset"));
    let data = copy(data[0], end.try_into().expect("a length"));
    vec![validity, offsets, data]
}

/// The functions of `peer/nanoarrow_cuda.c`.
struct Peer {
    error: unsafe extern "C" fn() -> *const c_char,
    produce: unsafe extern "C" fn(
        *const c_char,
        ArrowDeviceType,
        i64,
        sys::CUstream,
        *mut ArrowDeviceArray,
    ) -> c_int,
    consume: unsafe extern "C" fn(*const c_char, *mut ArrowDeviceArray, sys::CUstream) -> c_int,
    _library: Library,
}

impl Peer {
    /// The driver for tests is loaded already: it is the `libcuda.so` that the peer's library asks for.
    fn load(driver: &Driver) -> Option<&'static Self> {
        static PEER: OnceLock<Peer> = OnceLock::new();
        let Some(path) = env::var_os("NANOARROW_CUDA") else {
            skip("nanoarrow's CUDA device", "NANOARROW_CUDA names no library with it");
            return None;
        };
        let peer = PEER.get_or_init(|| {
            // SAFETY: nothing happens when this library is loaded.
            let library = unsafe { Library::new(path) }.expect("the peer's library");
            macro_rules! function {
                // SAFETY: the function has the type that is asked for, and the library is kept beside it.
                ($name:literal) => {
                    *unsafe { library.get($name) }.expect("the peer's function")
                };
            }
            let start: unsafe extern "C" fn() -> c_int = function!("peer_start");
            let contexts = driver.live(CONTEXTS);
            // SAFETY: takes nothing.
            assert_eq!(unsafe { start() }, 0);
            driver.expect_left(CONTEXTS, driver.live(CONTEXTS) - contexts);
            Self {
                error: function!("peer_error"),
                produce: function!("peer_produce"),
                consume: function!("peer_consume"),
                _library: library,
            }
        });
        Some(peer)
    }

    /// What a call came to.
    fn result(&self, code: c_int) -> Result<(), String> {
        // SAFETY: takes nothing; the text is this thread's, and copied at once.
        let error = unsafe { CStr::from_ptr((self.error)()) };
        if code == 0 { Ok(()) } else { Err(error.to_string_lossy().into_owned()) }
    }
}

/// Memory that Rust exports, zero at first.
enum Memory {
    Device(CudaSlice<u8>),
    /// With its address, which cudarc does not tell without waiting for the copy, and what is copied to it.
    Pinned(usize, PinnedHostSlice<u8>, CudaSlice<u8>),
}

impl Memory {
    fn new(stream: &Arc<CudaStream>, device_type: ArrowDeviceType, contents: &[u8]) -> Self {
        if device_type == ArrowDeviceType::CUDA {
            return Self::Device(stream.alloc_zeros(contents.len()).expect("memory"));
        }
        // SAFETY: written right away.
        let mut pinned = unsafe { stream.context().alloc_pinned(contents.len()) }.expect("memory");
        pinned.as_mut_slice().expect("memory of the host").fill(0);
        let address = pinned.as_ptr().expect("memory of the host").addr();
        Self::Pinned(address, pinned, stream.clone_htod(contents).expect("memory"))
    }

    /// Queues a copy of the contents to it.
    fn write(&mut self, stream: &Arc<CudaStream>, contents: &[u8]) {
        match self {
            Self::Device(memory) => stream.memcpy_htod(contents, memory),
            Self::Pinned(_, memory, source) => stream.memcpy_dtoh(source, memory),
        }
        .expect("the copy");
    }

    fn buffer(&self, export: &mut CudaExport<'_>) -> *const c_void {
        match self {
            Self::Device(memory) => export.buffer(memory).expect("a buffer"),
            Self::Pinned(address, ..) => ptr::without_provenance(*address),
        }
    }
}

/// nanoarrow, and two streams that know nothing of each other.
struct Pair {
    peer: &'static Peer,
    producer: Arc<CudaStream>,
    consumer: Arc<CudaStream>,
    driver: Driver,
}

impl Pair {
    fn new() -> Option<Self> {
        let driver = Driver::load()?;
        let peer = Peer::load(&driver)?;
        let context = CudaContext::new(DEVICE).expect("a context");
        let stream = || context.new_stream().expect("a stream");
        Some(Self { peer, producer: stream(), consumer: stream(), driver })
    }

    /// An array of nanoarrow's, which its busy stream writes later.
    fn produced(&self, format: &CStr, device_type: ArrowDeviceType) -> OwnedDeviceArray {
        let mut raw = ArrowDeviceArray::released();
        self.driver.delay(&self.producer, LATE);
        let (out, stream) = (&raw mut raw, self.producer.cu_stream());
        // SAFETY: the stream is alive, and of this device; `out` may be written.
        let code = unsafe { (self.peer.produce)(format.as_ptr(), device_type, DEVICE as i64, stream, out) };
        self.peer.result(code).expect("an array");
        // SAFETY: a live array that nobody else has; the driver's handles are for any thread.
        let array = unsafe { OwnedDeviceArray::from_raw(raw) }.expect("an array");
        assert_eq!(array.device(), Device::new(device_type, DEVICE as i64));
        array
    }

    /// What the consumer's stream reads, once it comes to it.
    fn read(&self, view: &ArrayView<'_>, format: &CStr) -> Vec<Vec<u8>> {
        // SAFETY: the buffers are as long as those of arrays of the format, in memory that the driver knows.
        buffers(view, format, |from, bytes| unsafe { copy_out(&self.consumer, from, bytes) })
    }

    /// An array of Rust's, which a busy stream writes later: with an event, or when that is done.
    fn exported(&self, format: &CStr, device_type: ArrowDeviceType, with_event: bool) -> OwnedDeviceArray {
        let stream = &self.producer;
        let contents = contents(format);
        let mut memory: Vec<_> =
            contents.iter().map(|contents| Memory::new(stream, device_type, contents)).collect();
        stream.synchronize().expect("the stream");
        self.driver.delay(stream, LATE);
        for (memory, contents) in memory.iter_mut().zip(&contents) {
            memory.write(stream, contents);
        }
        let mut export = CudaExport::new(stream).of_type(device_type).expect("a type of CUDA's");
        let buffers: Vec<_> = memory.iter().map(|memory| memory.buffer(&mut export)).collect();
        let node = ArrayNode {
            length: ROWS as i64,
            null_count: nulls() as i64,
            buffers: &buffers,
            ..Default::default()
        };
        if with_event {
            // SAFETY: these are the buffers of the format, in memory of this type, which is kept.
            return unsafe { export.export(&node, memory) }.expect("an array");
        }
        stream.synchronize().expect("the stream");
        let device = Device::new(device_type, DEVICE as i64);
        // SAFETY: as above, and they have been written.
        unsafe { node.export_on(device, ExportEvent::Synchronized, memory) }.expect("an array")
    }

    /// Gives nanoarrow an array, and says whether it found in it what it would have built itself.
    fn consumed(&self, format: &CStr, array: OwnedDeviceArray) -> Result<(), String> {
        let mut raw = array.into_raw();
        let stream = self.consumer.cu_stream();
        // SAFETY: a live array of the format, which is the peer's from here on; the stream is alive, and of its device.
        let code = unsafe { (self.peer.consume)(format.as_ptr(), &raw mut raw, stream) };
        assert!(raw.is_released(), "{:?}", self.peer.result(code));
        self.peer.result(code)
    }
}

/// The control: who does not wait for nanoarrow's event reads what was there before (C17).
#[test]
fn without_waiting_the_bytes_are_wrong() {
    let Some(pair) = Pair::new() else { return };
    for device_type in TYPES {
        let array = pair.produced(INT32, device_type);
        // SAFETY: it is not ready, which is the point; the driver's memory is written by its own thread later.
        let array = unsafe { array.assume_ready() };
        let untouched = vec![vec![0xCD; ROWS / 8], vec![0xCD; 4 * ROWS]];
        assert_eq!(pair.read(&array.view().expect("an array"), INT32), untouched, "{device_type}");
        pair.producer.synchronize().expect("the stream");
    }
}

/// D3, D5, D6, D7, C1, C17: the consumer's stream waits on the device for what nanoarrow copies there; and nanoarrow's
/// release, on our side, frees memory and event.
#[test]
fn a_stream_waits_for_what_nanoarrow_writes() {
    let Some(pair) = Pair::new() else { return };
    for (format, device_type) in EACH {
        let alive = pair.driver.all_alive();
        let array = pair.produced(format, device_type);
        assert_ne!(pair.driver.all_alive(), alive);
        pair.driver.reset();
        let array = array.synchronize(&pair.consumer).expect("a ready array");
        assert_eq!(array.readiness(), Readiness::Queued);
        assert_eq!(pair.driver.calls("cuStreamWaitEvent"), 1);
        let view = array.view().expect("an array");
        assert_eq!(pair.read(&view, format), contents(format), "{format:?} {device_type}");
        drop(array);
        assert_eq!(pair.driver.all_alive(), alive, "{format:?} {device_type}");
    }
}

/// D5, D7, C19: the host waits for what nanoarrow copies, and then pinned memory is for it.
#[test]
fn the_host_waits_for_what_nanoarrow_writes() {
    let Some(pair) = Pair::new() else { return };
    for format in [INT32, STRING] {
        let array = pair.produced(format, ArrowDeviceType::CUDA);
        let array = array.synchronize(&HostWait::new()).expect("a ready array");
        assert_eq!(array.readiness(), Readiness::Complete);
        assert_eq!(pair.read(&array.view().expect("an array"), format), contents(format));

        let array = pair.produced(format, ArrowDeviceType::CUDA_HOST);
        let array = array.synchronize(&HostWait::new()).expect("a ready array");
        let array = array.into_host_array().expect("memory of the host");
        let seen = buffers(&array.view().expect("an array"), format, |from, bytes| {
            // SAFETY: pinned memory, as long as the format says, written before the event fired.
            unsafe { slice::from_raw_parts(from.cast::<u8>(), bytes) }.to_vec()
        });
        assert_eq!(seen, contents(format));
    }
}

/// C17: nanoarrow's memory is of the kind that the driver frees without waiting for anybody; so an array is kept until
/// the work is done that reads it.
#[test]
fn nanoarrows_memory_is_kept_until_it_is_read() {
    let Some(pair) = Pair::new() else { return };
    let numbers = &contents(INT32)[1];
    let copy = pair.consumer.alloc_zeros::<u8>(numbers.len()).expect("memory");
    let array = pair.produced(INT32, ArrowDeviceType::CUDA).synchronize(&pair.consumer).expect("ready");
    let from = array.view().expect("an array").buffers()[1].addr() as u64;
    pair.driver.delay(&pair.consumer, LATE);
    // SAFETY: both are memory of the driver, that long, and alive until the stream is done: the array's because of what
    // is tested.
    unsafe { sys::cuMemcpyDtoDAsync_v2(pointer(&copy), from, numbers.len(), pair.consumer.cu_stream()) }
        .result()
        .expect("the copy");
    drop(InUse::until_done(array, &pair.consumer).expect("noted"));
    assert_eq!(pair.consumer.clone_dtoh(&copy).expect("the copy"), *numbers);
}

/// The control: without Rust's event nanoarrow finds something else (C17).
#[test]
fn without_waiting_the_bytes_are_wrong_for_nanoarrow() {
    let Some(pair) = Pair::new() else { return };
    for (format, device_type) in EACH {
        let mut raw = pair.exported(format, device_type, true).into_raw();
        raw.sync_event = ptr::null_mut();
        // SAFETY: live, and handed out once; that the event is missing is the point.
        let array = unsafe { OwnedDeviceArray::from_raw(raw) }.expect("an array");
        let error = pair.consumed(format, array).expect_err("other values");
        assert!(error.contains("root.buffers["), "{format:?} {device_type}: {error}");
    }
}

/// D3, D6, D7, C1, C17: nanoarrow waits for Rust's event, on its stream for memory of the device, on the host for pinned
/// memory, finds the values, and releases it all.
#[test]
fn nanoarrow_waits_for_what_rust_writes() {
    let Some(pair) = Pair::new() else { return };
    for (format, device_type) in EACH {
        let alive = pair.driver.all_alive();
        let array = pair.exported(format, device_type, true);
        pair.consumed(format, array).expect("the values");
        assert_eq!(pair.driver.all_alive(), alive, "{format:?} {device_type}");
    }
}

/// D8: what has no event nanoarrow takes as it is.
#[test]
fn nanoarrow_takes_what_is_ready() {
    let Some(pair) = Pair::new() else { return };
    for (format, device_type) in EACH {
        let array = pair.exported(format, device_type, false);
        assert!(array.as_raw().sync_event.is_null());
        pair.consumed(format, array).expect("the values");
    }
}
