//! What checking and copying allocate: nothing, and what is freed whenever an allocation fails.

mod common;
mod export;

use arrow_device_abi::{
    CopyError, CopyOptions, HostMemory, Limits, NoWait, NotForTheHost, OwnedArray, OwnedDeviceArray,
    SchemaView,
};

use common::Counter;
use export::allocator::{Counting, Counts, counting, failing_at, live};
use export::layouts;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An array that is valid allocates nothing, whatever is checked; all layouts, 16 nodes deep at most.
#[test]
fn checking_allocates_nothing() {
    for tree in layouts() {
        let (schema, array) = (tree.schema(), tree.export(&Counter::new()));
        let schema = schema.view().unwrap();
        let (_, counts) = counting(|| {
            let structure = (schema.validate(&Limits::DEFAULT), array.validate(schema, &Limits::DEFAULT));
            assert_eq!(structure, (Ok(()), Ok(())));
            // SAFETY: the schema is the array's own.
            unsafe { array.validate_contents(schema, &Limits::DEFAULT) }.is_ok()
        });
        // An array of nulls whose count says 0 is the one that is not valid.
        let all = if tree.format == "n" && tree.null_count == 0 { continue } else { counts };
        assert_eq!(all, Counts::default(), "{tree:?}");
    }
}

fn copy(
    array: &arrow_device_abi::ReadyDeviceArray,
    schema: SchemaView<'_>,
    trimmed: bool,
) -> Result<OwnedArray, CopyError<NotForTheHost>> {
    let options = if trimmed { CopyOptions::new().trimmed() } else { CopyOptions::new() };
    // SAFETY: the schema is the array's own.
    unsafe { array.to_host(schema, &HostMemory, options) }
}

/// C28: whichever allocation of a copy fails, it is an error, and nothing is left behind.
#[test]
fn every_allocation_may_fail() {
    for tree in layouts() {
        let (schema, array) = (tree.schema(), tree.export(&Counter::new()));
        let (schema, array) =
            (schema.view().unwrap(), OwnedDeviceArray::from(array).synchronize(&NoWait).unwrap());
        for trimmed in [false, true] {
            let (done, counts) = counting(|| copy(&array, schema, trimmed));
            // The block, and the tree around it.
            assert_eq!(live(), 2);
            counting(|| drop(done.unwrap()));
            assert_eq!(live(), 0);
            for which in 1..=counts.allocated {
                let (failed, _) = failing_at(which, || copy(&array, schema, trimmed));
                assert_eq!(failed.unwrap_err(), CopyError::OutOfMemory);
                assert_eq!(live(), 0);
            }
            // SAFETY: the schema is the array's own.
            let sizes = || unsafe { array.buffer_sizes(schema, &HostMemory, &Limits::DEFAULT) };
            let (done, counts) = counting(sizes);
            counting(|| drop(done.unwrap()));
            for which in 1..=counts.allocated {
                assert_eq!(failing_at(which, sizes).0.unwrap_err(), CopyError::OutOfMemory);
                assert_eq!(live(), 0);
            }
        }
    }
}
