//! Copies between the host and a device.

#[path = "../../arrays/mod.rs"]
mod arrays;
#[path = "../../common/mod.rs"]
mod common;
#[path = "../../export/mod.rs"]
mod export;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use arrow_device_abi::cuda::{CudaError, CudaExport, HostWait, InUse, ToDeviceErrorKind, to_device};
use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi::{
    ArrayNode, CopyError, CopyOptions, Device, Limits, NoWait, OwnedArray, OwnedDeviceArray, OwnedSchema,
    ReadyDeviceArray, SchemaNode,
};
use arrow_device_abi_cuda_tests::{Driver, EVENTS, MEMORY, array_of, bytes, in_no_context};
use cudarc::driver::{CudaContext, CudaStream};

use arrays::changes::changed;
use arrays::logical::elements;
use common::Counter;
use export::{Tree, layouts};

const LATE: Duration = Duration::from_millis(200);

fn streams() -> [Arc<CudaStream>; 3] {
    let context = CudaContext::new(1).expect("a context");
    [(); 3].map(|()| context.new_stream().expect("a stream"))
}

fn ready(array: OwnedArray) -> ReadyDeviceArray {
    OwnedDeviceArray::from(array).synchronize(&NoWait).expect("a host array")
}

fn on_host(tree: &Tree, dropped: &Counter) -> ReadyDeviceArray {
    ready(tree.export(dropped))
}

fn schema_of_bytes() -> OwnedSchema {
    SchemaNode { format: "C", ..Default::default() }.export().expect("a schema")
}

fn meaning(schema: &OwnedSchema, array: &OwnedArray) -> Vec<String> {
    elements(schema.view().expect("a schema"), array.view().expect("an array"))
}

/// D2, D6: every layout, and random arrays with offsets, to a device and back, over three streams: what comes back means
/// the same, and no copy is a moment too early, however the driver treats pageable memory.
#[test]
fn there_and_back() {
    let Some(driver) = Driver::load() else { return };
    // On a device that allocates in the order of streams, and on one that does not.
    for pools in [false, true] {
        driver.pools(pools);
        every_layout_there_and_back(&driver);
    }
}

fn every_layout_there_and_back(driver: &Driver) {
    let [producer, consumer, other] = streams();
    let of_each_layout = layouts().len();
    let random = (0..60).map(|seed| changed(&mut arrays::Rng::new(seed), None).expect("an array").tree);
    for (index, tree) in layouts().into_iter().chain(random).enumerate() {
        driver.stage_pageable(index % 2 == 0);
        let dropped = Counter::new();
        let schema = tree.schema();
        let original = meaning(&schema, &tree.export(&Counter::new()));
        let view = schema.view().expect("a schema");
        driver.delay(&producer, Duration::from_millis(2));
        let options = if index % 3 == 0 { CopyOptions::new().trimmed() } else { CopyOptions::new() };
        // SAFETY: the schema is the array's own.
        let copied = unsafe { to_device(on_host(&tree, &dropped), view, &producer, options) };
        let (copy, in_use) = copied.expect("a copy on the device");
        assert_eq!(copy.device(), Device::new(ArrowDeviceType::CUDA, 1));
        drop(in_use);
        assert_eq!(dropped.get(), 1, "the host's array goes when the copies are done");
        let copy = copy.synchronize(&consumer).expect("ready");
        // By the stream that was made to wait, and by one that was not.
        for stream in [&consumer, &other] {
            for options in [CopyOptions::new(), CopyOptions::new().trimmed()] {
                // SAFETY: the schema is the array's own.
                let back = unsafe { copy.to_host(view, stream, options) }.expect("a copy on the host");
                assert_eq!(meaning(&schema, &back), original, "{tree:?}");
                // The layouts are made of any bytes.
                if index >= of_each_layout {
                    // SAFETY: the schema is the array's own.
                    assert_eq!(unsafe { back.validate_contents(view, &Limits::DEFAULT) }, Ok(()), "{tree:?}");
                }
            }
        }
    }
}

/// D5, C17, C19: what is read of an array that another stream was made to wait for comes after its event, whichever of
/// CUDA's memories it is in.
#[test]
fn copies_wait_for_the_event() {
    let Some(driver) = Driver::load() else { return };
    let [producer, consumer, other] = streams();
    let released = Arc::new(AtomicUsize::new(0));
    let schema = schema_of_bytes();
    for device_type in [ArrowDeviceType::CUDA, ArrowDeviceType::CUDA_HOST, ArrowDeviceType::CUDA_MANAGED] {
        for staged in [true, false] {
            driver.stage_pageable(staged);
            let memory = bytes(&producer, 1, 100);
            driver.slow_fill(&producer, &memory, 8, LATE);
            let event = arrow_device_abi_cuda_tests::ForeignEvent::record(&producer);
            let array = array_of(device_type, 1, memory, Some(event), &released);
            let array = array.synchronize(&consumer).expect("ready");
            let copy = in_no_context(|| {
                let schema = schema.view().expect("a schema");
                // SAFETY: the schema is the array's own.
                unsafe { array.to_host(schema, &other, CopyOptions::new()) }.expect("a copy")
            });
            assert_eq!(meaning(&schema, &copy), vec!["[8]"; 100]);
        }
    }
}

/// A child that was moved out of an array that waits in a queue has no event: it cannot be copied, but once the host has
/// waited.
#[test]
fn a_child_without_an_event() {
    let Some(driver) = Driver::load() else { return };
    let [producer, consumer, _] = streams();
    let tree = export::structure(5, [export::leaf("C", 5, [None, Some(vec![1, 2, 3, 4, 5])])]);
    let schema = tree.schema();
    let view = schema.view().expect("a schema");
    let field = view.child(0).expect("a field");
    for waits_in_a_queue in [true, false] {
        driver.delay(&producer, LATE);
        // SAFETY: the schema is the array's own.
        let copied =
            unsafe { to_device(on_host(&tree, &Counter::new()), view, &producer, CopyOptions::new()) };
        let (copy, in_use) = copied.expect("a copy");
        let mut copy = if waits_in_a_queue {
            copy.synchronize(&consumer).expect("ready")
        } else {
            copy.synchronize(&HostWait::new()).expect("ready")
        };
        let child = copy.take_child(0).expect("a child");
        // SAFETY: the schema is the array's own.
        let copied = unsafe { child.to_host(field, &consumer, CopyOptions::new()) };
        if waits_in_a_queue {
            assert_eq!(copied.expect_err("no event"), CopyError::Memory(CudaError::NoEvent));
        } else {
            assert_eq!(copied.expect("a copy").view().expect("an array").length(), 5);
        }
        drop((copy, in_use));
    }
}

/// Arrays that are not on a CUDA device, and those that are, are not for these functions.
#[test]
fn the_wrong_side() {
    let Some(_driver) = Driver::load() else { return };
    let [producer, ..] = streams();
    let schema = schema_of_bytes();
    let view = schema.view().expect("a schema");
    let tree = export::leaf("C", 3, [None, Some(vec![1, 2, 3])]);
    let host = on_host(&tree, &Counter::new());
    // SAFETY: the schema is the array's own.
    let error = unsafe { host.to_host(view, &producer, CopyOptions::new()) }.expect_err("not CUDA's");
    assert_eq!(error, CopyError::Memory(CudaError::NotCuda(Device::CPU)));
    // SAFETY: the schema is the array's own.
    let (copy, in_use) = unsafe { to_device(host, view, &producer, CopyOptions::new()) }.expect("a copy");
    drop(in_use);
    let copy = copy.synchronize(&HostWait::new()).expect("ready");
    for options in [CopyOptions::new(), CopyOptions::new().trimmed()] {
        // SAFETY: an empty array of the null type.
        let array = unsafe { CudaExport::new(&producer).export(&ArrayNode::default(), ()) };
        let array = array.expect("an array").synchronize(&HostWait::new()).expect("ready");
        // SAFETY: it is refused for where it is, and nothing of it is read.
        let error = unsafe { to_device(array, view, &producer, options) };
        let error = error.expect_err("already on the device");
        assert!(matches!(error.kind, ToDeviceErrorKind::NotForTheHost(_)), "{error}");
        assert_eq!(error.array.device(), Device::new(ArrowDeviceType::CUDA, 1));
    }
    let wrong = SchemaNode { format: "u", ..Default::default() }.export().expect("a schema");
    // SAFETY: the schema is the array's own.
    let error = unsafe {
        to_device(
            on_host(&tree, &Counter::new()),
            wrong.view().expect("a schema"),
            &producer,
            CopyOptions::new(),
        )
    };
    assert!(matches!(error.expect_err("no string").kind, ToDeviceErrorKind::Invalid(_)));
    drop(copy);
}

/// What was told last and how often: bytes done, of all.
fn watched(told: &mut Vec<(usize, usize)>) -> impl FnMut(usize, usize) + '_ {
    |done, total| told.push((done, total))
}

/// How far the copies are is told on the way, both ways, and the end at last.
#[test]
fn progress_is_told() {
    let Some(_driver) = Driver::load() else { return };
    let [producer, consumer, _] = streams();
    const LEN: usize = (128 << 20) + 5;
    let tree = export::leaf("C", LEN as i64, [None, Some(vec![3; LEN])]);
    let schema = schema_of_bytes();
    let view = schema.view().expect("a schema");
    let mut told = Vec::new();
    let mut watch = watched(&mut told);
    let options = CopyOptions::new().on_progress(&mut watch);
    let (copy, in_use) =
        // SAFETY: the schema is the array's own.
        unsafe { to_device(on_host(&tree, &Counter::new()), view, &producer, options) }.expect("a copy");
    drop((in_use, watch));
    assert_eq!(told, [(64 << 20, LEN), (128 << 20, LEN), (LEN, LEN)]);
    told.clear();
    let copy = copy.synchronize(&consumer).expect("ready");
    let mut watch = watched(&mut told);
    let options = CopyOptions::new().on_progress(&mut watch);
    // SAFETY: the schema is the array's own.
    let back = unsafe { copy.to_host(view, &consumer, options) }.expect("a copy");
    drop(watch);
    assert_eq!(told, [(64 << 20, LEN), (128 << 20, LEN), (LEN, LEN)]);
    // SAFETY: `LEN` bytes that were copied.
    let copied = unsafe { back.view().expect("an array").buffer_as::<u8>(1, LEN) }.expect("the bytes");
    assert!(copied.iter().all(|byte| *byte == 3));
}

/// A panic of who is told leaves nothing behind, and no copy that still writes.
#[test]
fn a_panic_on_the_way() {
    let Some(driver) = Driver::load() else { return };
    let [producer, consumer, _] = streams();
    driver.stage_pageable(false);
    let tree = export::leaf("C", 1000, [None, Some(vec![3; 1000])]);
    let schema = schema_of_bytes();
    let view = schema.view().expect("a schema");
    // SAFETY: the schema is the array's own.
    let copied = unsafe { to_device(on_host(&tree, &Counter::new()), view, &producer, CopyOptions::new()) };
    let (copy, in_use) = copied.expect("a copy");
    drop(in_use);
    let copy = copy.synchronize(&consumer).expect("ready");
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut watch = |_, _| panic!("told");
        // SAFETY: the schema is the array's own.
        unsafe { copy.to_host(view, &consumer, CopyOptions::new().on_progress(&mut watch)) }.map(drop)
    }));
    assert!(result.is_err());
}

/// On a stream that captures a graph no copy would run.
#[test]
fn a_stream_that_captures() {
    let Some(driver) = Driver::load() else { return };
    let [producer, consumer, _] = streams();
    let tree = export::leaf("C", 3, [None, Some(vec![1, 2, 3])]);
    let schema = schema_of_bytes();
    let view = schema.view().expect("a schema");
    let host = on_host(&tree, &Counter::new());
    driver.capture(true);
    // SAFETY: the schema is the array's own.
    let error = unsafe { to_device(host, view, &producer, CopyOptions::new()) }.expect_err("it captures");
    assert_eq!(error.kind, ToDeviceErrorKind::Cuda(CudaError::Capturing));
    driver.capture(false);
    // SAFETY: the schema is the array's own.
    let (copy, in_use) =
        unsafe { to_device(error.array, view, &producer, CopyOptions::new()) }.expect("a copy");
    let copy = copy.synchronize(&HostWait::new()).expect("ready");
    drop(in_use);
    driver.capture(true);
    // SAFETY: the schema is the array's own.
    let error = unsafe { copy.to_host(view, &consumer, CopyOptions::new()) }.expect_err("it captures");
    assert_eq!(error, CopyError::Memory(CudaError::Capturing));
    driver.capture(false);
}

/// A block of a per-thread default stream is freed on another thread only once its copies are done, on a device that frees
/// in the order of streams, too.
#[test]
fn a_block_of_a_per_thread_stream() {
    let Some(driver) = Driver::load() else { return };
    driver.pools(true);
    driver.stage_pageable(false);
    let context = CudaContext::new(0).expect("a context");
    let stream = context.per_thread_stream();
    let tree = export::leaf("C", 3, [None, Some(vec![1, 2, 3])]);
    let schema = schema_of_bytes();
    driver.delay(&stream, LATE);
    let view = schema.view().expect("a schema");
    // SAFETY: the schema is the array's own.
    let copied = unsafe { to_device(on_host(&tree, &Counter::new()), view, &stream, CopyOptions::new()) };
    let (copy, in_use) = copied.expect("a copy");
    driver.reset();
    in_no_context(move || drop(copy));
    assert_eq!((driver.calls("cuMemFree_v2"), driver.calls("cuMemFreeAsync")), (1, 0));
    assert_eq!(in_use.is_done(), Ok(true), "freed only when the copies were done");
}

/// Each call of the driver, made to fail in turn: the error is the driver's, the host's array comes back and is released
/// once, nothing is left on the device, no copy is still on its way, and no context is left current.
#[test]
fn failures() {
    let Some(driver) = Driver::load() else { return };
    for (pools, allocate) in [(false, "cuMemAlloc_v2"), (true, "cuMemAllocAsync")] {
        driver.pools(pools);
        let streams = streams();
        let calls = [
            allocate,
            "cuMemsetD8Async",
            "cuMemcpyHtoDAsync_v2",
            "cuMemcpyDtoHAsync_v2",
            "cuEventCreate",
            "cuEventRecord",
            "cuEventSynchronize",
            "cuStreamWaitEvent",
        ];
        let failures = calls.map(|function| each_failure_of(function, &driver, [&streams[0], &streams[1]]));
        // Both ways: the batches of copies, of offsets and of buffers; an event for each batch, for the array, for the
        // host's; and a wait for the array by the consumer's stream, and for each look at it again.
        assert_eq!(failures, [1, 1, 3, 5, 5, 5, 3, 2], "{calls:?}");
    }
}

/// How many of a function's calls are reported when they fail.
fn each_failure_of(function: &str, driver: &Driver, [producer, consumer]: [&Arc<CudaStream>; 2]) -> usize {
    let tree = export::structure(
        3,
        [
            export::leaf("C", 3, [None, Some(vec![1, 2, 3])]),
            export::leaf("u", 3, [None, arrays::contents::integers("i", [0, 1, 1, 2]), Some(b"ab".to_vec())]),
        ],
    );
    let schema = tree.schema();
    let original = meaning(&schema, &tree.export(&Counter::new()));
    let (events, memory) = (driver.live(EVENTS), driver.live(MEMORY));
    let mut failures = 0;
    for nth in 1.. {
        let dropped = Counter::new();
        let host = on_host(&tree, &dropped);
        driver.stage_pageable(false);
        driver.delay(producer, Duration::from_millis(1));
        driver.reset();
        driver.fail(function, nth, 999);
        let result = in_no_context(|| copy_there_and_back(host, &schema, [producer, consumer]));
        let happened = !driver.fail_is_pending();
        driver.reset();
        producer.synchronize().expect("the stream");
        assert_eq!(dropped.get(), 1, "{function}, call {nth}");
        match result {
            Ok(back) => assert_eq!(meaning(&schema, &back), original),
            Err(error) => {
                assert!(happened);
                assert_eq!(error.code(), Some(999), "{function}, call {nth}: {error}");
                failures += 1;
            }
        }
        assert_eq!((driver.live(EVENTS), driver.live(MEMORY)), (events, memory), "{function}, call {nth}");
        if !happened {
            break;
        }
    }
    failures
}

fn copy_there_and_back(
    host: ReadyDeviceArray,
    schema: &OwnedSchema,
    [producer, consumer]: [&Arc<CudaStream>; 2],
) -> Result<OwnedArray, CudaError> {
    let schema = schema.view().expect("a schema");
    // SAFETY: the schema is the array's own.
    let (copy, in_use) = match unsafe { to_device(host, schema, producer, CopyOptions::new()) } {
        Ok(copied) => copied,
        Err(error) => {
            assert_eq!(error.array.device(), Device::CPU);
            let ToDeviceErrorKind::Cuda(kind) = error.kind else { panic!("not the driver's: {error}") };
            return Err(kind);
        }
    };
    let released = in_use.release();
    let copy = match copy.synchronize(consumer) {
        Ok(copy) => copy,
        Err(error) => {
            let arrow_device_abi::SyncErrorKind::Wait(kind) = error.kind else { panic!("{error}") };
            return Err(kind);
        }
    };
    // SAFETY: the schema is the array's own.
    let back = unsafe { copy.to_host(schema, consumer, CopyOptions::new()) }.map_err(|error| match error {
        CopyError::Memory(error) => error,
        other => panic!("not the driver's: {other}"),
    });
    released.map_err(|error| error.error)?;
    back
}

/// The array on the host is kept until the copies are done, and no longer.
#[test]
fn the_host_array_is_in_use() {
    let Some(driver) = Driver::load() else { return };
    let [producer, consumer, _] = streams();
    driver.stage_pageable(false);
    let tree = export::leaf("C", 4, [None, Some(vec![4, 5, 6, 7])]);
    let schema = schema_of_bytes();
    let view = schema.view().expect("a schema");
    let dropped = Counter::new();
    driver.delay(&producer, LATE);
    // SAFETY: the schema is the array's own.
    let copied = unsafe { to_device(on_host(&tree, &dropped), view, &producer, CopyOptions::new()) };
    let (copy, in_use): (_, InUse) = copied.expect("a copy");
    assert_eq!((in_use.is_done(), dropped.get()), (Ok(false), 0));
    let copy = copy.synchronize(&consumer).expect("ready");
    // SAFETY: the schema is the array's own.
    let back = unsafe { copy.to_host(view, &consumer, CopyOptions::new()) }.expect("a copy");
    assert_eq!(dropped.get(), 0);
    drop(in_use);
    assert_eq!(dropped.get(), 1);
    assert_eq!(meaning(&schema, &back), ["[4]", "[5]", "[6]", "[7]"]);
    assert_eq!(driver.calls("cuStreamSynchronize"), 0);
}
