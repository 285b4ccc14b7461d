use std::sync::Arc;
use std::time::Duration;

use arrow_device_abi::ArrayNode;
use arrow_device_abi::OwnedDeviceArray;
use arrow_device_abi::cuda::CudaExport;
use arrow_device_abi_cuda_tests::Driver;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DriverError, result, sys};

/// The device that is tried, and what is slow on it.
pub struct Machine {
    pub context: Arc<CudaContext>,
    test_driver: Option<Driver>,
    /// Is set again and again by what is to take its time.
    scratch: Option<CudaSlice<u8>>,
}

/// How long the slow work takes that comes before an event, roughly; on a GPU at least.
const SLOW: Duration = Duration::from_millis(200);
const SCRATCH: usize = 1 << 30;
/// A GPU sets less than 10 TB a second.
const FILLS: usize = 500;

impl Machine {
    pub fn find(on_test_driver: bool) -> Result<Self, String> {
        let test_driver = if on_test_driver { Driver::load() } else { None };
        if on_test_driver && test_driver.is_none() {
            return Err("there is no CUDA driver for tests".to_owned());
        }
        // SAFETY: opens the library, if it is there.
        if !unsafe { sys::is_culib_present() } {
            return Err("there is no NVIDIA driver".to_owned());
        }
        let code = |error: DriverError| format!("the driver says {:?}", error.0);
        let context = CudaContext::new(0).map_err(code)?;
        let scratch = if on_test_driver {
            None
        } else {
            Some(context.default_stream().alloc_zeros(SCRATCH).map_err(code)?)
        };
        Ok(Self { context, test_driver, scratch })
    }

    pub fn name(&self) -> String {
        if self.test_driver.is_some() {
            "the driver for tests".to_owned()
        } else {
            self.context.name().expect("a name")
        }
    }

    pub fn stream(&self) -> Arc<CudaStream> {
        self.context.new_stream().expect("a stream")
    }

    /// Keeps `stream` busy for a while.
    pub fn slow(&self, stream: &CudaStream) {
        if let Some(driver) = &self.test_driver {
            driver.delay(stream, SLOW);
        }
        if let Some(scratch) = &self.scratch {
            self.context.bind_to_thread().expect("the context");
            let to = arrow_device_abi_cuda_tests::pointer(scratch);
            for _ in 0..FILLS {
                // SAFETY: memory of the device, which nobody reads.
                unsafe { result::memset_d8_async(to, 1, SCRATCH, stream.cu_stream()) }.expect("a fill");
            }
        }
    }

    /// Sets memory on `stream`, after whatever is queued there.
    pub fn fill(&self, stream: &CudaStream, memory: &CudaSlice<u8>, value: u8) {
        self.context.bind_to_thread().expect("the context");
        let to = arrow_device_abi_cuda_tests::pointer(memory);
        // SAFETY: memory of the device, as long as its slice.
        unsafe { result::memset_d8_async(to, value, memory.len(), stream.cu_stream()) }.expect("a fill");
    }

    /// An array of bytes whose slow producer has just been started: 1 before, `value` afterwards.
    pub fn late_array(&self, stream: &Arc<CudaStream>, value: u8, len: usize) -> OwnedDeviceArray {
        let memory = arrow_device_abi_cuda_tests::bytes(stream, 1, len);
        self.slow(stream);
        self.fill(stream, &memory, value);
        export(stream, memory)
    }
}

/// Exports memory as an array of bytes, with an event on `stream`.
pub fn export(stream: &Arc<CudaStream>, memory: CudaSlice<u8>) -> OwnedDeviceArray {
    let mut export = CudaExport::new(stream);
    let buffers = [std::ptr::null(), export.buffer(&memory).expect("a buffer")];
    let length = i64::try_from(memory.len()).expect("a length");
    let node = ArrayNode { length, buffers: &buffers, ..Default::default() };
    // SAFETY: an array of bytes without nulls has these two buffers; the memory is as long, and kept.
    unsafe { export.export(&node, memory) }.expect("an array")
}
