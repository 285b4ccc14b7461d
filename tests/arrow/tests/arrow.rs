//! arrow-rs's arrays, record batches and readers through the C structs, and back.

mod arrays;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Int32Array, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader,
    StructArray, make_array,
};
use arrow_buffer::NullBuffer;
use arrow_device_abi::interop::arrow::{
    ArrowError, ImportError, export_array, export_reader, export_record_batch, import_array, import_reader,
    import_record_batch,
};
use arrow_device_abi::raw::{ArrowDeviceType, ArrowSchema};
use arrow_device_abi::{
    ArrayNode, ArrayStreamReader, Device, DeviceArrayStreamReader, EventWaiter, ExportEvent, NoWait,
    OwnedArray, OwnedArrayStream, OwnedDeviceArray, OwnedSchema, Readiness, ReadyDeviceArray, SchemaNode,
    SyncEvent, errno,
};
use arrow_schema::{DataType, Field, Schema};

fn ready(array: OwnedDeviceArray) -> ReadyDeviceArray {
    array.synchronize(&NoWait).expect("an array without an event")
}

fn batch(values: &[i32]) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int32Array::from(values.to_vec()));
    RecordBatch::try_from_iter([("x", column)]).unwrap()
}

/// The lowest version of arrow-rs cannot export list views, which is an error there and nothing else, and cannot
/// compare run-end encoded arrays, but print them.
#[test]
fn every_type_goes_out_and_comes_back_equal() {
    let lowest = std::env::var_os("ARROW_RS_IS_LOWEST").is_some();
    for array in arrays::all() {
        let data_type = array.data_type().clone();
        if lowest && matches!(data_type, DataType::ListView(_) | DataType::LargeListView(_)) {
            let error = export_array(&array).unwrap_err();
            assert!(error.to_string().contains("not supported"), "{error}");
            continue;
        }
        for (offset, length) in [(0, array.len()), (1, array.len() - 1), (1, 1), (2, 0)] {
            let array = array.slice(offset, length);
            let (exported, schema) = export_array(&array).unwrap();
            assert_eq!(exported.device(), Device::CPU);
            // SAFETY: the two belong together.
            let back = unsafe { import_array(ready(exported), &schema) }.unwrap();
            assert_eq!(back.data_type(), &data_type);
            assert_eq!(format!("{back:?}"), format!("{array:?}"));
            if !(lowest && matches!(data_type, DataType::RunEndEncoded(..))) {
                assert_eq!(&back, &array, "{data_type}");
            }
        }
    }
}

/// The structs are the same, and what is released stays so.
#[test]
fn structs_convert_into_each_other() {
    let array = Int32Array::from(vec![Some(1), None, Some(3)]);
    let theirs = FFI_ArrowArray::new(&array.to_data());
    let ours = OwnedArray::from(theirs);
    let view = ours.view().unwrap();
    assert_eq!((view.length(), view.null_count(), view.buffers().len()), (3, Some(1), 2));
    let theirs_schema = FFI_ArrowSchema::try_from(&Field::new("x", DataType::Int32, true)).unwrap();
    let our_schema = OwnedSchema::from(theirs_schema);
    assert_eq!(
        (our_schema.view().unwrap().format(), our_schema.view().unwrap().name()),
        (Ok("i"), Ok(Some("x")))
    );

    let (theirs, theirs_schema) = (FFI_ArrowArray::from(ours), FFI_ArrowSchema::from(our_schema));
    // SAFETY: the two belong together.
    let back = make_array(unsafe { from_ffi(theirs, &theirs_schema) }.unwrap());
    assert_eq!(back.as_any().downcast_ref::<Int32Array>(), Some(&array));

    assert!(OwnedArray::from(FFI_ArrowArray::empty()).is_released());
    assert!(FFI_ArrowArray::from(OwnedArray::released()).is_released());
    assert!(OwnedSchema::from(FFI_ArrowSchema::empty()).is_released());
    assert!(OwnedArrayStream::from(FFI_ArrowArrayStream::empty()).is_released());
}

/// A producer with nothing but pointers has an arrow-rs array in three lines, and its keep-alive goes with it.
#[test]
fn pointers_become_an_arrow_rs_array() {
    struct Keep(Vec<i32>, Arc<AtomicUsize>);
    impl Drop for Keep {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.fill(-1);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let keep = Keep(vec![4, 5, 6], Arc::clone(&dropped));
    let buffers = [std::ptr::null(), keep.0.as_ptr().cast()];
    let node = ArrayNode { length: 3, buffers: &buffers, ..Default::default() };
    // SAFETY: an int32 array of three values, which `keep` keeps.
    let array = FFI_ArrowArray::from(unsafe { node.export(keep) }.unwrap());
    let schema = FFI_ArrowSchema::from(SchemaNode { format: "i", ..Default::default() }.export().unwrap());
    // SAFETY: the two belong together.
    let array = make_array(unsafe { from_ffi(array, &schema) }.unwrap());
    let slice = array.slice(1, 2);
    drop(array);
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    assert_eq!(slice.as_any().downcast_ref::<Int32Array>().unwrap().values(), &[5, 6]);
    drop(slice);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn record_batches_keep_schema_and_metadata() {
    let metadata = |key: &str| HashMap::from([(key.to_owned(), "value".to_owned())]);
    let field = Field::new("x", DataType::Int32, false).with_metadata(metadata("of the field"));
    let schema = Arc::new(Schema::new(vec![field]).with_metadata(metadata("of the schema")));
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_new(schema, vec![column]).unwrap();
    for batch in [batch.slice(1, 2), batch.slice(0, 0), batch] {
        let (array, schema) = export_record_batch(&batch).unwrap();
        // SAFETY: the two belong together.
        let back = unsafe { import_record_batch(ready(array), &schema) }.unwrap();
        assert_eq!(back, batch);
    }
}

/// Without columns the number of rows is all that there is.
#[test]
fn record_batches_without_columns_keep_their_rows() {
    let options = RecordBatchOptions::new().with_row_count(Some(7));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let (array, schema) = export_record_batch(&batch).unwrap();
    // SAFETY: the two belong together.
    assert_eq!(unsafe { import_record_batch(ready(array), &schema) }.unwrap().num_rows(), 7);
}

#[test]
fn what_is_no_record_batch_is_an_error() {
    let import = |array: &dyn Array| {
        let (array, schema) = export_array(array).unwrap();
        // SAFETY: the two belong together.
        unsafe { import_record_batch(ready(array), &schema) }.unwrap_err().to_string()
    };
    assert!(import(&Int32Array::from(vec![1])).contains("a record batch is a struct array"));
    let structs = StructArray::from(batch(&[1, 2]));
    let (fields, columns, _) = structs.into_parts();
    let with_null = StructArray::new(fields, columns, Some(NullBuffer::from(vec![true, false])));
    assert!(import(&with_null).contains("a record batch has no nulls of its own"));
}

/// C19: what the host cannot read, or has not waited for, comes back as it was.
#[test]
fn what_the_host_cannot_read_comes_back() {
    struct Queue;
    // SAFETY: no test reads these buffers.
    unsafe impl EventWaiter for Queue {
        type Error = std::convert::Infallible;

        fn wait(&self, _: Device, _: SyncEvent<'_>) -> Result<Readiness, Self::Error> {
            Ok(Readiness::Queued)
        }
    }
    let released = Arc::new(AtomicUsize::new(0));
    struct Keep(Arc<AtomicUsize>);
    impl Drop for Keep {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let schema = SchemaNode { format: "n", ..Default::default() }.export().unwrap();
    let mut handle = 0_u8;
    let event = ExportEvent::Handle((&raw mut handle).cast());
    for (device_type, event) in [
        (ArrowDeviceType::CUDA, ExportEvent::Synchronized),
        (ArrowDeviceType::CUDA, event),
        (ArrowDeviceType::CUDA_HOST, event),
    ] {
        let device = Device::new(device_type, 0);
        // SAFETY: an array without buffers is on any device, and nobody waits for the event.
        let array =
            unsafe { ArrayNode::default().export_on(device, event, Keep(Arc::clone(&released))) }.unwrap();
        let array = array.synchronize(&Queue).unwrap();
        // SAFETY: the two belong together.
        let error = unsafe { import_array(array, &schema) }.unwrap_err();
        let ImportError::NotHostReady(back) = error else { panic!("{error}") };
        assert_eq!(back.0.device(), device);
        let before = released.load(Ordering::Relaxed);
        drop(back);
        assert_eq!(released.load(Ordering::Relaxed), before + 1);
    }
    // Pinned memory without an event is the host's to read.
    // SAFETY: as above.
    let array = unsafe {
        ArrayNode::default().export_on(
            Device::new(ArrowDeviceType::CUDA_HOST, 0),
            ExportEvent::Synchronized,
            (),
        )
    };
    // SAFETY: the two belong together.
    assert_eq!(unsafe { import_array(ready(array.unwrap()), &schema) }.unwrap().len(), 0);
}

/// arrow-rs panics at released schemas; here they are errors.
#[test]
fn a_released_schema_is_an_error() {
    let (array, _) = export_array(&Int32Array::from(vec![1])).unwrap();
    // SAFETY: a released schema is looked at no further.
    let error = unsafe { import_array(ready(array), &OwnedSchema::released()) }.unwrap_err();
    assert!(error.to_string().contains("released"), "{error}");
}

fn reader(batches: Vec<Result<RecordBatch, ArrowError>>) -> Box<dyn RecordBatchReader + Send> {
    Box::new(RecordBatchIterator::new(batches, batch(&[]).schema()))
}

#[test]
fn readers_go_out_and_come_back_equal() {
    let batches = [batch(&[1, 2]), batch(&[]), batch(&[3])];
    let stream = export_reader(reader(batches.iter().cloned().map(Ok).collect())).unwrap();
    assert_eq!(stream.as_raw().device_type, ArrowDeviceType::CPU);
    // SAFETY: the arrays are of the stream's schema.
    let back = unsafe { import_reader(stream, NoWait) }.unwrap();
    assert_eq!(back.schema(), batches[0].schema());
    // It can be read elsewhere.
    let read = std::thread::spawn(move || back.collect::<Result<Vec<_>, _>>().unwrap()).join().unwrap();
    assert_eq!(read, batches);
}

/// B10: an error in the middle keeps its errno and text, and ends the reader.
#[test]
fn errors_of_a_reader_arrive() {
    let not_found = || ArrowError::from_external_error(Box::new(io::Error::from_raw_os_error(errno::ENOMEM)));
    let batches = || reader(vec![Ok(batch(&[1])), Err(not_found()), Ok(batch(&[2]))]);

    let mut stream = DeviceArrayStreamReader::new(export_reader(batches()).unwrap());
    assert_eq!(stream.next().unwrap().unwrap().as_raw().array.length, 1);
    let error = stream.next().unwrap().unwrap_err();
    assert_eq!(error.code(), Some(errno::ENOMEM));
    assert!(error.message().unwrap().contains("External error"), "{error}");

    // SAFETY: the arrays are of the stream's schema.
    let back = unsafe { import_reader(export_reader(batches()).unwrap(), NoWait) }.unwrap();
    let read: Vec<_> = back.take(9).collect();
    assert_eq!((read.len(), read[0].as_ref().unwrap().num_rows()), (2, 1));
    assert!(read[1].as_ref().unwrap_err().to_string().contains("get_next failed"), "{:?}", read[1]);
}

/// Host streams, theirs read by us and ours read by them.
#[test]
fn host_streams_convert_into_each_other() {
    let batches = vec![Ok(batch(&[1, 2])), Ok(batch(&[3]))];
    let mut ours = ArrayStreamReader::new(FFI_ArrowArrayStream::new(reader(batches)).into());
    let schema = ours.schema().unwrap();
    assert_eq!(schema.view().unwrap().format(), Ok("+s"));
    let arrays: Vec<OwnedArray> = ours.map(Result::unwrap).collect();
    assert_eq!(arrays.iter().map(|array| array.view().unwrap().length()).collect::<Vec<_>>(), [2, 1]);

    // SAFETY: the arrays are of this schema.
    let stream = unsafe { OwnedArrayStream::from_iter(schema, arrays.into_iter().map(Ok::<_, ArrowError>)) };
    let theirs = arrays::stream_reader(stream.into());
    let read: Vec<RecordBatch> = theirs.map(Result::unwrap).collect();
    assert_eq!(read, [batch(&[1, 2]), batch(&[3])]);
}

#[test]
fn a_stream_without_a_schema_is_an_error() {
    // SAFETY: the arrays are of this schema.
    let stream = unsafe {
        arrow_device_abi::OwnedDeviceArrayStream::from_iter(
            ArrowDeviceType::CPU,
            OwnedSchema::released(),
            std::iter::empty::<Result<OwnedDeviceArray, ArrowError>>(),
        )
    };
    // SAFETY: there are no arrays.
    let error = unsafe { import_reader(stream, NoWait) }.err().expect("no schema");
    assert!(matches!(error, ImportError::Stream(_)), "{error}");
    assert_eq!(size_of::<ArrowSchema>(), size_of::<FFI_ArrowSchema>());
}
