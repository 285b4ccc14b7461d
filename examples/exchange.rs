//! Two halves of one process that share nothing but C pointers: one produces a stream of arrays, the other takes it,
//! waits, reads, prints and releases it.
//!
//! Run with `cargo run --example exchange`.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_device_abi::raw::ArrowDeviceArrayStream;

fn main() -> Result<(), Box<dyn Error>> {
    let releases = Arc::new(AtomicUsize::new(0));
    let mut stream = ArrowDeviceArrayStream::released();

    // SAFETY: `stream` is valid for writes, and holds nothing.
    unsafe { producer::export(&raw mut stream, Arc::clone(&releases)) }?;
    // SAFETY: `stream` is a live stream that obeys the interface, and this is its only user.
    unsafe { consumer::import(&raw mut stream) }?;

    println!(
        "producer: {} of {} batches released, once each",
        releases.load(Ordering::Relaxed),
        producer::BATCHES
    );
    if releases.load(Ordering::Relaxed) == producer::BATCHES {
        Ok(())
    } else {
        Err("a batch was not released exactly once".into())
    }
}

/// Knows the consumer only as a pointer to write a stream to.
mod producer {
    use std::error::Error;
    use std::ptr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use arrow_device_abi::raw::{ArrowDeviceArrayStream, ArrowDeviceType};
    use arrow_device_abi::{
        ArrayNode, Device, ExportErrorKind, ExportEvent, OwnedDeviceArray, OwnedDeviceArrayStream,
        OwnedSchema, SchemaNode, StreamFailure,
    };

    pub const BATCHES: usize = 3;
    const CITIES: [&str; 4] = ["Oslo", "Lima", "Cairo", "Quito"];

    /// The memory of one batch. Dropped when the consumer has released every node of it.
    struct Batch {
        /// One bit a row, 0 for null.
        validity: Vec<u8>,
        temperatures: Vec<f64>,
        city_indices: Vec<i32>,
        city_offsets: Vec<i32>,
        city_bytes: Vec<u8>,
        releases: Arc<AtomicUsize>,
    }

    impl Drop for Batch {
        fn drop(&mut self) {
            self.releases.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Batch {
        fn new(number: usize, releases: Arc<AtomicUsize>) -> Self {
            let offsets = CITIES.iter().scan(0, |end, city| {
                *end += city.len() as i32;
                Some(*end)
            });
            Self {
                validity: vec![0b1101],
                temperatures: [3.5, 0.0, 31.25, 14.0].map(|degrees| degrees + number as f64).to_vec(),
                city_indices: (0..CITIES.len() as i32).rev().collect(),
                city_offsets: std::iter::once(0).chain(offsets).collect(),
                city_bytes: CITIES.concat().into_bytes(),
                releases,
            }
        }

        fn export(self) -> Result<OwnedDeviceArray, ExportErrorKind> {
            let cities = ArrayNode {
                length: CITIES.len() as i64,
                buffers: &[ptr::null(), self.city_offsets.as_ptr().cast(), self.city_bytes.as_ptr().cast()],
                ..Default::default()
            };
            let rows = self.temperatures.len() as i64;
            let columns = [
                ArrayNode {
                    length: rows,
                    null_count: 1,
                    buffers: &[self.validity.as_ptr().cast(), self.temperatures.as_ptr().cast()],
                    ..Default::default()
                },
                ArrayNode {
                    length: rows,
                    buffers: &[ptr::null(), self.city_indices.as_ptr().cast()],
                    dictionary: Some(&cities),
                    ..Default::default()
                },
            ];
            let batch =
                ArrayNode { length: rows, buffers: &[ptr::null()], children: &columns, ..Default::default() };
            // SAFETY: the nodes are those of `schema`, with buffers of as many rows; moving `self` moves no heap
            // memory, so they live and stay as they are until it is dropped. They are written, so there is nothing
            // to wait for.
            let exported = unsafe { batch.export_on(Device::CPU, ExportEvent::Synchronized, self) };
            exported.map_err(|error| error.kind)
        }
    }

    fn schema() -> Result<OwnedSchema, ExportErrorKind> {
        let cities = SchemaNode { format: "u", ..Default::default() };
        let columns = [
            SchemaNode {
                format: "g",
                name: Some("temperature"),
                metadata: &[(b"unit", b"degree Celsius")],
                ..Default::default()
            },
            SchemaNode { format: "i", name: Some("city"), dictionary: Some(&cities), ..Default::default() },
        ];
        SchemaNode { format: "+s", children: &columns, flags: 0, ..Default::default() }.export()
    }

    /// # Safety
    ///
    /// - `out` is valid for writes.
    pub unsafe fn export(
        out: *mut ArrowDeviceArrayStream,
        releases: Arc<AtomicUsize>,
    ) -> Result<(), Box<dyn Error>> {
        let batches = (0..BATCHES).map(move |number| {
            let exported = Batch::new(number, Arc::clone(&releases)).export();
            exported.map_err(StreamFailure::from)
        });
        // SAFETY: the arrays are of this schema.
        let stream = unsafe { OwnedDeviceArrayStream::from_iter(ArrowDeviceType::CPU, schema()?, batches) };
        // SAFETY: valid for writes, as the caller promises.
        unsafe { stream.export_to(out) };
        Ok(())
    }
}

/// Knows the producer only as a pointer to take a stream from.
mod consumer {
    use std::error::Error;

    use arrow_device_abi::raw::ArrowDeviceArrayStream;
    use arrow_device_abi::{
        ArrayView, DeviceArrayStreamReader, NoWait, OwnedDeviceArrayStream, ReadyDeviceArray, SchemaView,
    };

    /// # Safety
    ///
    /// - `stream` is valid and holds a live stream, which nobody else uses.
    pub unsafe fn import(stream: *mut ArrowDeviceArrayStream) -> Result<(), Box<dyn Error>> {
        // SAFETY: as the caller promises.
        let stream = unsafe { OwnedDeviceArrayStream::take(stream) }?;
        let mut reader = DeviceArrayStreamReader::new(stream);
        let schema = reader.schema()?;
        println!("schema");
        print_schema(schema.view()?, 1)?;

        for (number, array) in reader.by_ref().enumerate() {
            let array = array?;
            let event = match array.sync_event()? {
                Some(event) => format!("{event:?}"),
                None => "none, ready at once".to_owned(),
            };
            println!("\nbatch {number} on {}, event: {event}", array.device());
            let array = array.synchronize(&NoWait)?;
            print_array("batch", array.view()?, schema.view()?, 1)?;
            print_values(&array, schema.view()?)?;
        }
        println!("\nend of the stream, which is on device type {}", reader.device_type());
        Ok(())
    }

    fn indent(depth: usize) -> String {
        "  ".repeat(depth)
    }

    fn print_schema(schema: SchemaView<'_>, depth: usize) -> Result<(), Box<dyn Error>> {
        let name = schema.name()?.unwrap_or_default();
        let nullable = if schema.is_nullable() { ", nullable" } else { "" };
        print!("{}{name:<12} format {:?}{nullable}", indent(depth), schema.format()?);
        for (key, value) in schema.metadata()? {
            print!(", {} = {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        }
        println!();
        if let Some(dictionary) = schema.dictionary()? {
            println!("{}dictionary", indent(depth + 1));
            print_schema(dictionary, depth + 2)?;
        }
        schema.children().try_for_each(|child| print_schema(child?, depth + 1))
    }

    fn print_array(
        name: &str,
        array: ArrayView<'_>,
        schema: SchemaView<'_>,
        depth: usize,
    ) -> Result<(), Box<dyn Error>> {
        let nulls = array.null_count().map_or("not counted".to_owned(), |nulls| nulls.to_string());
        println!("{}{name:<12} rows {}, nulls {nulls}", indent(depth), array.length());
        for (index, buffer) in array.buffers().iter().enumerate() {
            println!("{}buffer {index} at {buffer:?}", indent(depth + 1));
        }
        if let (Some(array), Some(schema)) = (array.dictionary()?, schema.dictionary()?) {
            print_array("dictionary", array, schema, depth + 1)?;
        }
        for (child, schema) in array.children().zip(schema.children()) {
            let schema = schema?;
            print_array(schema.name()?.unwrap_or_default(), child?, schema, depth + 1)?;
        }
        Ok(())
    }

    /// The first values of the columns that this consumer understands.
    fn print_values(batch: &ReadyDeviceArray, schema: SchemaView<'_>) -> Result<(), Box<dyn Error>> {
        if !batch.is_host_ready() {
            println!("  the host cannot read the values");
            return Ok(());
        }
        let batch = batch.view()?;
        for (column, schema) in batch.children().zip(schema.children()) {
            let (column, schema) = (column?, schema?);
            let values = match (schema.format()?, column.dictionary()?) {
                ("g", None) => doubles(column)?,
                ("i", Some(dictionary)) => words(column, dictionary)?,
                (other, _) => vec![format!("values of format {other} are not printed")],
            };
            println!("  {:<12} {}", schema.name()?.unwrap_or_default(), values.join(", "));
        }
        Ok(())
    }

    fn is_valid(array: ArrayView<'_>, row: usize) -> Result<bool, Box<dyn Error>> {
        if array.buffer(0)?.is_null() {
            return Ok(true);
        }
        // SAFETY: the host can read the array, and its first buffer is a bitmap with a bit for each row.
        let bitmap = unsafe { array.buffer_as::<u8>(0, (array.offset() + array.length()).div_ceil(8)) }?;
        let row = array.offset() + row;
        Ok(bitmap[row / 8] >> (row % 8) & 1 == 1)
    }

    fn doubles(array: ArrayView<'_>) -> Result<Vec<String>, Box<dyn Error>> {
        // SAFETY: the host can read the array, which is one of doubles: its second buffer has one for each row.
        let values = unsafe { array.buffer_as::<f64>(1, array.offset() + array.length()) }?;
        let rows = values[array.offset()..].iter().enumerate();
        rows.map(|(row, value)| Ok(if is_valid(array, row)? { value.to_string() } else { "null".to_owned() }))
            .collect()
    }

    fn words(array: ArrayView<'_>, dictionary: ArrayView<'_>) -> Result<Vec<String>, Box<dyn Error>> {
        // SAFETY: the host can read the array, whose second buffer has an int32 index for each row.
        let indices = unsafe { array.buffer_as::<i32>(1, array.offset() + array.length()) }?;
        // SAFETY: the dictionary is one of strings: an offset more than there are strings.
        let offsets = unsafe { dictionary.buffer_as::<i32>(1, dictionary.length() + 1) }?;
        let end = usize::try_from(offsets[dictionary.length()])?;
        // SAFETY: the third buffer has as many bytes as the last offset says.
        let bytes = unsafe { dictionary.buffer_as::<u8>(2, end) }?;
        indices[array.offset()..]
            .iter()
            .map(|index| {
                let index = usize::try_from(*index)?;
                let word = usize::try_from(offsets[index])?..usize::try_from(offsets[index + 1])?;
                Ok(String::from_utf8(bytes[word].to_vec())?)
            })
            .collect()
    }
}
