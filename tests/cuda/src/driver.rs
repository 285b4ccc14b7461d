use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arrow_device_abi_support::skip;
use cudarc::driver::{CudaSlice, CudaStream};
use libloading::Library;

use crate::values::pointer;

/// Kinds of objects, for [`Driver::live`].
pub const CONTEXTS: c_int = 1;
pub const STREAMS: c_int = 2;
pub const EVENTS: c_int = 3;
pub const MEMORY: c_int = 4;

/// Results of the driver API, for [`Driver::fail`].
pub const DEINITIALIZED: c_int = 4;
pub const INVALID_CONTEXT: c_int = 201;
pub const INVALID_HANDLE: c_int = 400;

/// The driver's functions for tests.
struct Functions {
    calls: unsafe extern "C" fn(*const c_char) -> i64,
    all_calls: unsafe extern "C" fn() -> i64,
    fail: unsafe extern "C" fn(*const c_char, i64, c_int),
    fail_is_pending: unsafe extern "C" fn() -> bool,
    reset: unsafe extern "C" fn(),
    live: unsafe extern "C" fn(c_int) -> i64,
    gone: unsafe extern "C" fn(bool),
    event_flags: unsafe extern "C" fn(*mut c_void) -> i64,
    capture: unsafe extern "C" fn(bool),
    pools: unsafe extern "C" fn(bool),
    stage_pageable: unsafe extern "C" fn(bool),
    depth: unsafe extern "C" fn() -> c_int,
    slow_fill: unsafe extern "C" fn(*mut c_void, c_ulonglong, u8, usize, c_uint) -> c_int,
    delay: unsafe extern "C" fn(*mut c_void, c_uint) -> c_int,
}

/// Loads a library by its path; whoever looks for its soname then gets it.
fn load(path: Option<&str>) -> Option<Library> {
    let Some(path) = path else {
        skip("the CUDA driver for tests", "it is made for Linux");
        return None;
    };
    // SAFETY: a library of ours; what it does when it is loaded and unloaded is for all threads.
    Some(unsafe { Library::new(path) }.expect("the library was built"))
}

/// Loads the library that has the driver's name and no functions; false if there is none here.
pub fn load_stub() -> bool {
    static STUB: OnceLock<Option<Library>> = OnceLock::new();
    STUB.get_or_init(|| load(option_env!("CUDA_STUB"))).is_some()
}

fn functions() -> Option<&'static Functions> {
    /// With the library that they are in, which stays loaded with them.
    static FUNCTIONS: OnceLock<Option<(Functions, Library)>> = OnceLock::new();
    let loaded = FUNCTIONS
        .get_or_init(|| {
            let library = load(option_env!("CUDA_DRIVER"))?;
            macro_rules! functions {
                ($($field:ident),+) => { Functions { $(
                    // SAFETY: the function has this type, and the library is kept beside it.
                    $field: *unsafe { library.get(concat!("test_", stringify!($field))) }.expect("the driver's function"),
                )+ } };
            }
            let functions = functions!(
                calls,
                all_calls,
                fail,
                fail_is_pending,
                reset,
                live,
                gone,
                event_flags,
                capture,
                pools,
                stage_pageable,
                depth,
                slow_fill,
                delay
            );
            Some((functions, library))
        })
        .as_ref();
    loaded.map(|(functions, _)| functions)
}

/// The driver, for one test at a time: its counts and failures are the process's.
///
/// What was alive when the test began has to be all that is alive when it ends.
pub struct Driver {
    functions: &'static Functions,
    alive: Mutex<[i64; 5]>,
    _one_at_a_time: MutexGuard<'static, ()>,
}

impl Driver {
    /// `None` where there is none; that was said then.
    pub fn load() -> Option<Self> {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let driver = Self { functions: functions()?, alive: Mutex::default(), _one_at_a_time: one };
        *driver.expected() = driver.all_alive();
        driver.reset();
        Some(driver)
    }

    fn expected(&self) -> MutexGuard<'_, [i64; 5]> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many objects of each kind are alive.
    pub fn all_alive(&self) -> [i64; 5] {
        [0, CONTEXTS, STREAMS, EVENTS, MEMORY].map(|kind| if kind == 0 { 0 } else { self.live(kind) })
    }

    /// How often a function of the driver API was called since the last reset.
    pub fn calls(&self, name: &str) -> i64 {
        let name = CString::new(name).expect("a function's name");
        // SAFETY: a text that lives through the call.
        unsafe { (self.functions.calls)(name.as_ptr()) }
    }

    /// How often any function was called since the last reset.
    pub fn all_calls(&self) -> i64 {
        // SAFETY: takes nothing.
        unsafe { (self.functions.all_calls)() }
    }

    /// Lets the `nth` call of a function from now on fail, once.
    pub fn fail(&self, name: &str, nth: i64, result: c_int) {
        let name = CString::new(name).expect("a function's name");
        // SAFETY: a text that lives through the call.
        unsafe { (self.functions.fail)(name.as_ptr(), nth, result) };
    }

    /// Whether the call that was to fail has not been made.
    pub fn fail_is_pending(&self) -> bool {
        // SAFETY: takes nothing.
        unsafe { (self.functions.fail_is_pending)() }
    }

    pub fn reset(&self) {
        // SAFETY: takes nothing.
        unsafe { (self.functions.reset)() };
    }

    /// Says that the test leaves objects alive, whose destruction it made fail.
    pub fn expect_left(&self, kind: c_int, count: i64) {
        self.expected()[usize::try_from(kind).expect("a kind")] += count;
    }

    /// How many objects of a kind are alive.
    pub fn live(&self, kind: c_int) -> i64 {
        // SAFETY: takes a number.
        unsafe { (self.functions.live)(kind) }
    }

    /// Lets the driver answer as at the exit of the process.
    pub fn set_gone(&self, gone: bool) {
        // SAFETY: takes a bool.
        unsafe { (self.functions.gone)(gone) };
    }

    /// Whether every stream captures a graph, as it says, and nobody may wait.
    pub fn capture(&self, is_on: bool) {
        // SAFETY: takes a bool.
        unsafe { (self.functions.capture)(is_on) };
    }

    /// Whether contexts that are made from now on allocate and free in the order of streams.
    pub fn pools(&self, are_there: bool) {
        // SAFETY: takes a bool.
        unsafe { (self.functions.pools)(are_there) };
    }

    /// Whether copies of pageable memory are done with it when they are queued, as most are.
    pub fn stage_pageable(&self, staged: bool) {
        // SAFETY: takes a bool.
        unsafe { (self.functions.stage_pageable)(staged) };
    }

    /// The flags of a live event; −1 if it is none.
    #[allow(clippy::not_unsafe_ptr_arg_deref, reason = "the driver looks the handle up before it reads it")]
    pub fn event_flags(&self, event: *mut c_void) -> i64 {
        // SAFETY: the driver looks the handle up before it reads it.
        unsafe { (self.functions.event_flags)(event) }
    }

    /// How deep the calling thread's stack of contexts is.
    pub fn depth(&self) -> c_int {
        // SAFETY: takes nothing.
        unsafe { (self.functions.depth)() }
    }

    /// Fills memory on a stream, after a while: what a kernel does.
    pub fn slow_fill(&self, stream: &CudaStream, memory: &CudaSlice<u8>, value: u8, after: Duration) {
        let (to, bytes) = (pointer(memory), memory.len());
        let after = c_uint::try_from(after.as_micros()).expect("a short while");
        stream.context().bind_to_thread().expect("the context");
        // SAFETY: the stream is alive, and the memory until the stream is done.
        let result =
            unsafe { (self.functions.slow_fill)(stream.cu_stream().cast(), to, value, bytes, after) };
        assert_eq!(result, 0);
    }

    /// Keeps a stream busy.
    pub fn delay(&self, stream: &CudaStream, time: Duration) {
        let time = c_uint::try_from(time.as_micros()).expect("a short while");
        stream.context().bind_to_thread().expect("the context");
        // SAFETY: the stream is alive.
        let result = unsafe { (self.functions.delay)(stream.cu_stream().cast(), time) };
        assert_eq!(result, 0);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.set_gone(false);
        self.stage_pageable(true);
        self.pools(false);
        self.capture(false);
        self.reset();
        if !std::thread::panicking() {
            // What is freed in the order of a stream may be a moment late.
            for _ in 0..200 {
                if self.all_alive() == *self.expected() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(
                self.all_alive(),
                *self.expected(),
                "contexts, streams, events, memory alive after the test"
            );
        }
    }
}
