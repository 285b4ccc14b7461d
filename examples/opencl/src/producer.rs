//! The giving half: a kernel that writes shared virtual memory, exported with the kernel's event.

use std::error::Error;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arrow_device_abi::raw::ArrowDeviceType;
use arrow_device_abi::{ArrayNode, Device, ExportEvent, OwnedDeviceArray, OwnedSchema, SchemaNode};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, CL_DEVICE_TYPE_ALL};
use opencl3::error_codes::{
    CL_DEVICE_NOT_FOUND, CL_PLATFORM_NOT_FOUND_KHR, ClError, DLOPEN_RUNTIME_LOAD_FAILED,
};
use opencl3::event::{CL_COMPLETE, Event, cl_event, create_user_event, set_user_event_status};
use opencl3::kernel::Kernel;
use opencl3::memory::{CL_MEM_READ_WRITE, svm_alloc, svm_free};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::cl_int;

const SQUARES: &str = "kernel void squares(global int *out) {
    int i = get_global_id(0);
    out[i] = i * i;
}";

/// What the memory holds before the kernel has run.
pub const UNWRITTEN: i32 = -1;

/// The first OpenCL device that has shared virtual memory; `None` if there is none, or no OpenCL at all.
///
/// # Errors
///
/// OpenCL's, if it has platforms but cannot list them.
pub fn find_device() -> Result<Option<opencl3::device::Device>, ClError> {
    let platforms = match get_platforms() {
        Err(ClError(DLOPEN_RUNTIME_LOAD_FAILED | CL_PLATFORM_NOT_FOUND_KHR)) => return Ok(None),
        platforms => platforms?,
    };
    for platform in platforms {
        let devices = match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Err(ClError(CL_DEVICE_NOT_FOUND)) => continue,
            devices => devices?,
        };
        let mut devices = devices.into_iter().map(opencl3::device::Device::new);
        let with_memory =
            devices.find(|device| device.svm_mem_capability() & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER != 0);
        if with_memory.is_some() {
            return Ok(with_memory);
        }
    }
    Ok(None)
}

/// Makes arrays of squares on one device.
pub struct Producer {
    context: Arc<Context>,
    queue: CommandQueue,
    kernel: Kernel,
    live: Arc<AtomicUsize>,
}

impl Producer {
    /// A producer with a context of its own on `device`.
    ///
    /// # Errors
    ///
    /// OpenCL's, or its compiler's text.
    pub fn new(device: &opencl3::device::Device) -> Result<Self, Box<dyn Error>> {
        let context = Context::from_device(device)?;
        let program = Program::create_and_build_from_source(&context, SQUARES, "")?;
        Ok(Self {
            queue: CommandQueue::create_default_with_properties(&context, 0, 0)?,
            kernel: Kernel::create(&program, "squares")?,
            context: Arc::new(context),
            live: Arc::default(),
        })
    }

    /// A gate in this producer's context, closed.
    ///
    /// # Errors
    ///
    /// OpenCL's.
    pub fn gate(&self) -> Result<Gate, ClError> {
        let event = create_user_event(self.context.get()).map_err(ClError)?;
        Ok(Gate { event: Event::new(event), is_set: false })
    }

    /// How many arrays' memory is allocated, exported or not.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Acquire)
    }

    /// The schema of [`squares`](Self::squares).
    ///
    /// # Errors
    ///
    /// If memory is short.
    pub fn schema() -> Result<OwnedSchema, Box<dyn Error>> {
        let square = SchemaNode { format: "i", name: Some("square"), ..Default::default() };
        Ok(SchemaNode { format: "+s", children: &[square], ..Default::default() }.export()?)
    }

    /// A struct array with one column, the squares of 0 to `len` − 1, which a kernel writes once `gate` is open. Returns
    /// when that is queued; the array's event is the kernel's.
    ///
    /// The memory is freed when both the last node of the array is released and the kernel is done or has failed.
    ///
    /// # Errors
    ///
    /// OpenCL's, also if `len` is 0; nothing is exported and nothing stays allocated then.
    pub fn squares(&self, len: usize, gate: Option<&Gate>) -> Result<OwnedDeviceArray, Box<dyn Error>> {
        let length = i64::try_from(len)?;
        let bytes = len.checked_mul(size_of::<i32>()).ok_or("the array is too long")?;
        let memory = Memory::new(&self.context, bytes, &self.live)?;
        let values = memory.pointer;
        // SAFETY: memory of the queue's context, so many bytes long, which no other command knows.
        let fill = unsafe { self.queue.enqueue_svm_mem_fill(values, &[UNWRITTEN], bytes, &[]) }?;
        let mut written = Written { event: fill, memory: ManuallyDrop::new(memory) };
        written.event.wait()?;

        // SAFETY: the kernel's one argument is a pointer to ints.
        unsafe { self.kernel.set_arg_svm_pointer(0, values) }?;
        let gate: Vec<cl_event> = gate.map(|gate| gate.event.get()).into_iter().collect();
        let kernel = self.kernel.get();
        // SAFETY: one dimension, no offset, OpenCL's choice of groups. The kernel writes one int a work item, and there are
        // as many as the memory holds; it lives until the event has fired, which `Written` sees to.
        let run = unsafe {
            self.queue.enqueue_nd_range_kernel(kernel, 1, ptr::null(), &raw const len, ptr::null(), &gate)
        };
        written.event = run?;
        // Else the kernel might stay in the queue, and the consumer, who has no hold on the queue, wait for ever.
        self.queue.flush()?;

        let (handle, values) = (written.event.get(), values.cast_const());
        let kept = Kept(Some(written));
        let square = ArrayNode { length, buffers: &[ptr::null(), values], ..Default::default() };
        let array = ArrayNode { length, buffers: &[ptr::null()], children: &[square], ..Default::default() };
        let device = Device::new(ArrowDeviceType::OPENCL, 0);
        // SAFETY: the nodes are those of `schema`; the buffer is on `device`, the context's only one, and written when the
        // event fires. Both are `kept`'s.
        let exported = unsafe { array.export_on(device, ExportEvent::Handle(handle), kept) };
        Ok(exported.map_err(|error| error.kind)?)
    }
}

/// Holds kernels back until it is opened: a user event. A gate that is dropped closed makes them fail, so that nobody
/// waits for ever.
pub struct Gate {
    event: Event,
    is_set: bool,
}

impl Gate {
    /// Lets the kernels run.
    ///
    /// # Errors
    ///
    /// OpenCL's.
    pub fn open(self) -> Result<(), ClError> {
        self.set(CL_COMPLETE)
    }

    /// Makes the kernels fail, for the reason `status`, which is negative.
    ///
    /// # Errors
    ///
    /// OpenCL's.
    pub fn fail(self, status: cl_int) -> Result<(), ClError> {
        self.set(status)
    }

    fn set(mut self, status: cl_int) -> Result<(), ClError> {
        self.is_set = true;
        set_user_event_status(self.event.get(), status).map_err(ClError)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if !self.is_set {
            let _ = set_user_event_status(self.event.get(), -1);
        }
    }
}

/// Shared virtual memory.
struct Memory {
    context: Arc<Context>,
    pointer: *mut c_void,
    live: Arc<AtomicUsize>,
}

// SAFETY: OpenCL's memory belongs to no thread.
unsafe impl Send for Memory {}

impl Memory {
    fn new(context: &Arc<Context>, bytes: usize, live: &Arc<AtomicUsize>) -> Result<Self, ClError> {
        // SAFETY: the flags are right, 0 is the device's own alignment.
        let pointer = unsafe { svm_alloc(context.get(), CL_MEM_READ_WRITE, bytes, 0) }.map_err(ClError)?;
        live.fetch_add(1, Ordering::AcqRel);
        Ok(Self { context: Arc::clone(context), pointer, live: Arc::clone(live) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in this context, and no command that uses it is left.
        let freed = unsafe { svm_free(self.context.get(), self.pointer) };
        if freed.is_ok() {
            self.live.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Memory, and the event of the last command that writes it.
struct Written {
    event: Event,
    memory: ManuallyDrop<Memory>,
}

impl Written {
    fn is_running(&self) -> bool {
        !self.event.command_execution_status().is_ok_and(|status| status.0 <= CL_COMPLETE)
    }
}

impl Drop for Written {
    /// Waits for the command, be it that it fails, since `clSVMFree` does not.
    fn drop(&mut self) {
        let _ = self.event.wait();
        // Rather leaked than freed under a running kernel.
        if !self.is_running() {
            // SAFETY: the only drop, and nobody uses it after.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// What an array keeps. A release should not block, whenever it comes: what is released while its command runs waits on
/// a thread of its own.
struct Kept(Option<Written>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(written) = self.0.take_if(|written| written.is_running()) {
            // If there is no thread to be had, this drops it here.
            let _ = thread::Builder::new().spawn(move || drop(written));
        }
    }
}
