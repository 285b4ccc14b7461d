//! A hostile stream: what its callbacks answer, leave behind and do to their stream is scripted by the fuzzer.
#![no_main]

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use arrow_device_abi::raw::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use arrow_device_abi::{Limits, Owned, StreamReader, StreamStruct};
use hostile::{Arena, Input, Pair};
use libfuzzer_sys::fuzz_target;

/// What a stream's private data points to.
struct Script<'a> {
    input: Input<'a>,
    arena: Arena,
    calls: usize,
}

impl Script<'_> {
    /// The next answer: a code, and what is left in the out-struct.
    fn answer(&mut self) -> (c_int, Option<Pair>) {
        self.calls += 1;
        let code = match self.input.byte() {
            0..=239 => 0,
            byte => c_int::from(byte) - 247,
        };
        let ends = self.input.is_empty() || self.calls > 20 || self.input.byte() > 250;
        (code, (!ends).then(|| Pair::new(&mut self.input, &mut self.arena)))
    }
}

macro_rules! callbacks {
    ($stream:ident, $array:ident, $module:ident, |$pair:ident, $script:ident| $item:expr, $extra:tt) => {
        mod $module {
            use super::*;

            /// # Safety
            ///
            /// - `stream` is live, and one of `new`.
            unsafe fn script<'a>(stream: *mut $stream) -> &'a mut Script<'a> {
                // SAFETY: as the caller promises.
                unsafe { &mut *(*stream).private_data.cast() }
            }

            unsafe extern "C" fn get_schema(stream: *mut $stream, out: *mut ArrowSchema) -> c_int {
                // SAFETY: called on a live stream of `new`.
                let script = unsafe { script(stream) };
                let (code, pair) = script.answer();
                if let Some(pair) = pair {
                    // SAFETY: the out-struct is valid for writes, and the pair's for reads.
                    unsafe { out.write(pair.schema.read()) };
                }
                code
            }

            unsafe extern "C" fn get_next(stream: *mut $stream, out: *mut $array) -> c_int {
                // SAFETY: called on a live stream of `new`.
                let $script = unsafe { script(stream) };
                let (code, pair) = $script.answer();
                if let Some($pair) = pair {
                    let item = $item;
                    // SAFETY: the out-struct is valid for writes.
                    unsafe { out.write(item) };
                }
                if $script.input.byte() == 255 {
                    // SAFETY: called on a live stream.
                    unsafe { release(stream) };
                }
                code
            }

            unsafe extern "C" fn get_last_error(stream: *mut $stream) -> *const c_char {
                // SAFETY: called on a live stream of `new`.
                match unsafe { script(stream) }.input.byte() {
                    0..=99 => ptr::null(),
                    100..=199 => c"gone".as_ptr(),
                    _ => c"\xFF not UTF-8".as_ptr(),
                }
            }

            unsafe extern "C" fn release(stream: *mut $stream) {
                // SAFETY: called on a live stream, which is valid for writes.
                unsafe { (*stream).release = None };
            }

            pub fn new(script: &mut Script<'_>) -> Owned<$stream> {
                let there = script.input.byte();
                let stream = $stream {
                    get_schema: (there != 255).then_some(get_schema),
                    get_next: (there != 254).then_some(get_next),
                    get_last_error: (there != 253).then_some(get_last_error),
                    release: Some(release),
                    private_data: ptr::from_mut(script).cast::<c_void>(),
                    ..$extra
                };
                // SAFETY: a live stream, whose script outlives it; nobody else has it.
                unsafe { Owned::from_raw(stream) }.expect("it has a release callback")
            }
        }
    };
}
callbacks!(
    ArrowArrayStream,
    ArrowArray,
    host,
    // SAFETY: a struct of the arena.
    |pair, _script| unsafe { pair.array.read() },
    { ArrowArrayStream::released() }
);
callbacks!(
    ArrowDeviceArrayStream,
    ArrowDeviceArray,
    device,
    |pair, script| ArrowDeviceArray {
        // SAFETY: a struct of the arena.
        array: unsafe { pair.array.read() },
        device_id: script.input.number(0),
        device_type: if script.input.byte() < 250 { ArrowDeviceType::CPU } else { ArrowDeviceType(7777) },
        ..ArrowDeviceArray::released()
    },
    { ArrowDeviceArrayStream { device_type: ArrowDeviceType::CPU, ..ArrowDeviceArrayStream::released() } }
);

/// Drains it, unchecked for a while and then checked, and nothing after an end or an error.
fn drain<S: StreamStruct>(stream: Owned<S>, unchecked: u8) {
    let mut reader = StreamReader::new(stream);
    for _ in 0..unchecked % 4 {
        let _ = reader.schema();
        let _ = reader.next_array().map_err(|error| error.to_string());
    }
    let limits = Limits::DEFAULT.with_depth(24).with_nodes(500);
    let Ok(mut checked) = reader.checked(limits) else { return };
    assert_eq!(checked.schema().validate(&limits), Ok(()));
    while let Some(batch) = checked.next() {
        if batch.map_err(|error| error.to_string()).is_err() {
            break;
        }
    }
    assert!(checked.next().is_none());
}

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script { input: Input::new(bytes), arena: Arena::default(), calls: 0 };
    let unchecked = script.input.byte();
    if script.input.byte() % 2 == 0 {
        drain(host::new(&mut script), unchecked);
    } else {
        drain(device::new(&mut script), unchecked);
    }
});
