//! A producer and a consumer on two threads that share nothing but a handler: the producer drives batches into it, the
//! consumer has a few of them asked for ahead, and stops when it has seen enough.
//!
//! Run with `cargo run --example async_exchange`.

use std::error::Error;
use std::sync::Arc;
use std::thread;

use arrow_device_abi::{AsyncReceiver, Demand};

const PREFETCH: u32 = 4;
const WANTED: u64 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let counts = Arc::new(producer::Counts::default());

    // A producer in C would get `handler.into_raw()`, a pointer to the struct.
    let (handler, receive) = AsyncReceiver::prepare(Demand::Prefetch(PREFETCH));
    let counted = Arc::clone(&counts);
    let producing = thread::spawn(move || producer::produce(handler, &counted));

    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (requested, delivered) = runtime.block_on(consumer::consume(receive))?;

    let end = producing.join().map_err(|_| "the producer panicked")??;
    println!("producer: the stream ended as {end:?}");
    let (made, released) = counts.get();
    println!(
        "requested {requested}, made {made}, delivered {delivered}, discarded {}, released {released}",
        made - delivered
    );
    // One is made ahead of the requests.
    if made <= requested + 1 && delivered == WANTED && released == made {
        Ok(())
    } else {
        Err("a batch was lost, or made without a request".into())
    }
}

/// Waits for nobody but the consumer's requests: on its own thread, without an executor.
mod producer {
    use std::ptr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use arrow_device_abi::raw::ArrowDeviceType;
    use arrow_device_abi::{
        ArrayNode, AsyncHandler, Device, Driven, ExportErrorKind, ExportEvent, OwnedDeviceArray, SchemaNode,
    };

    /// Batches, of which there would be a million.
    const BATCHES: u64 = 1_000_000;

    #[derive(Default)]
    pub struct Counts {
        made: AtomicU64,
        released: AtomicU64,
    }

    impl Counts {
        pub fn get(&self) -> (u64, u64) {
            (self.made.load(Ordering::Relaxed), self.released.load(Ordering::Relaxed))
        }
    }

    /// The memory of one batch. Dropped when whoever has it releases it.
    struct Batch {
        values: Vec<u64>,
        counts: Arc<Counts>,
    }

    impl Drop for Batch {
        fn drop(&mut self) {
            self.counts.released.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn batch(number: u64, counts: &Arc<Counts>) -> Result<OwnedDeviceArray, ExportErrorKind> {
        let batch = Batch { values: vec![number, number * number], counts: Arc::clone(counts) };
        counts.made.fetch_add(1, Ordering::Relaxed);
        let column = ArrayNode {
            length: 2,
            buffers: &[ptr::null(), batch.values.as_ptr().cast()],
            ..ArrayNode::default()
        };
        let node =
            ArrayNode { length: 2, buffers: &[ptr::null()], children: &[column], ..ArrayNode::default() };
        // SAFETY: a struct of one column of uint64, as the schema says, in host memory that `batch` keeps.
        unsafe { node.export_on(Device::CPU, ExportEvent::Synchronized, batch) }.map_err(|error| error.kind)
    }

    pub fn produce(handler: AsyncHandler, counts: &Arc<Counts>) -> Result<Driven, ExportErrorKind> {
        let number = SchemaNode { format: "L", name: Some("number"), ..SchemaNode::default() };
        let schema = SchemaNode { format: "+s", children: &[number], ..SchemaNode::default() }.export()?;
        let batches = (0..BATCHES)
            .map(|number| batch(number, counts).inspect(|_| println!("producer: made batch {number}")));
        // SAFETY: the arrays are of this schema.
        Ok(unsafe { handler.drive_iter(ArrowDeviceType::CPU, schema, batches) }.wait())
    }
}

/// Knows the producer only through the handler that it has given away.
mod consumer {
    use std::error::Error;
    use std::future::poll_fn;
    use std::pin::Pin;

    use arrow_device_abi::{AsyncReceiver, NoWait, OwnedDeviceArray, Receive};
    use futures_core::Stream;

    /// How many batches were asked for, and how many taken.
    pub async fn consume(receive: Receive) -> Result<(u64, u64), Box<dyn Error>> {
        let receiver: AsyncReceiver = receive.await?;
        let control = receiver.control().clone();
        println!(
            "consumer: {} column, at most {} ahead",
            receiver.schema().view()?.n_children(),
            super::PREFETCH
        );

        let mut arrays = receiver.into_arrays();
        let mut delivered = 0;
        while delivered < super::WANTED {
            let next = poll_fn(|context| Pin::new(&mut arrays).poll_next(context)).await;
            print(next.ok_or("an early end")??)?;
            delivered += 1;
        }
        println!("consumer: has seen enough");
        drop(arrays); // cancels, and discards what has come and what still comes
        Ok((control.requested().try_into()?, delivered))
    }

    fn print(array: OwnedDeviceArray) -> Result<(), Box<dyn Error>> {
        let array = array.synchronize(&NoWait)?;
        let column = array.view()?.child(0)?;
        // SAFETY: a column of uint64 without nulls, in host memory: its second buffer has one for each row.
        let values = unsafe { column.buffer_as::<u64>(1, column.length()) }?;
        println!("consumer: {values:?}");
        Ok(())
    }
}
