//! Two halves of a process that share nothing but C pointers: one exports what an OpenCL kernel will have written, the
//! other waits for it, reads it and prints its sum.
//!
//! Run with `cargo run -p arrow-device-abi-opencl-example`.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use arrow_device_abi::raw::{ArrowDeviceArray, ArrowSchema};
use arrow_device_abi_opencl_example::producer::{Producer, find_device};

const ROWS: usize = 1_000;
const DELAY: Duration = Duration::from_millis(200);

fn main() -> Result<(), Box<dyn Error>> {
    let Some(device) = find_device()? else {
        return Err("there is no OpenCL device with shared virtual memory".into());
    };
    println!("producer: {}", device.name()?);
    let producer = Producer::new(&device)?;
    let gate = producer.gate()?;

    let mut array = ArrowDeviceArray::released();
    let mut schema = ArrowSchema::released();
    let exported = producer.squares(ROWS, Some(&gate))?;
    // SAFETY: valid for writes, and holds nothing.
    unsafe { exported.export_to(&raw mut array) };
    // SAFETY: as above.
    unsafe { Producer::schema()?.export_to(&raw mut schema) };
    println!("producer: {ROWS} squares exported, the kernel runs in {DELAY:?}");

    let began = Instant::now();
    let opener = thread::spawn(move || {
        thread::sleep(DELAY);
        gate.open()
    });
    // SAFETY: both are live, obey the interface and are nobody else's; the schema is the array's.
    let sum = unsafe { consumer::sum(&raw mut array, &raw mut schema) }?;
    println!("consumer: sum {sum} after {} ms", began.elapsed().as_millis());

    opener.join().map_err(|_| "the opener panicked")??;
    println!("producer: memory of {} arrays left", producer.live());
    if sum == (0..ROWS as i64).map(|i| i * i).sum::<i64>() { Ok(()) } else { Err("the sum is wrong".into()) }
}

/// Knows the producer only as two pointers.
mod consumer {
    use std::error::Error;

    use arrow_device_abi::raw::{ArrowDeviceArray, ArrowSchema};
    use arrow_device_abi::{OwnedDeviceArray, OwnedSchema};
    use arrow_device_abi_opencl_example::consumer::{queue_for, read_int32};
    use arrow_device_abi_opencl_example::{HostWait, QueueWait};

    /// # Safety
    ///
    /// - `array` and `schema` point to live structs that obey the interface, and nobody else uses them.
    /// - The schema is the array's.
    pub unsafe fn sum(array: *mut ArrowDeviceArray, schema: *mut ArrowSchema) -> Result<i64, Box<dyn Error>> {
        // SAFETY: as the caller promises.
        let array = unsafe { OwnedDeviceArray::take(array) }?;
        // SAFETY: as the caller promises.
        let schema = unsafe { OwnedSchema::take(schema) }?;
        if schema.view()?.format()? != "+s" || schema.view()?.child(0)?.format()? != "i" {
            return Err("the first column is not of int32".into());
        }
        println!("consumer: an array on {}, event {:?}", array.device(), array.sync_event()?);

        let queue = queue_for(&array)?.ok_or("an array without an event does not say where it is")?;
        let mut array = array.synchronize(&QueueWait(&queue))?;
        println!("consumer: {:?}, the host has not waited", array.readiness());
        let (first, rows) = (array.view()?.offset(), array.view()?.length());
        let column = array.take_child(0)?;
        // SAFETY: the schema says int32, and the queue is where the array is and has the wait for its event.
        let values = unsafe { read_int32(&queue, &column) }?;
        // A kernel that failed since then wrote nothing.
        array.into_device_array()?.synchronize(&HostWait)?;
        // A struct's offset is one into its columns.
        Ok(values.iter().skip(first).take(rows).map(|&value| i64::from(value)).sum())
    }
}
