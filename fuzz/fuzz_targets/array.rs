//! A hostile pair of schema and array: checked, measured and copied.
#![no_main]

use arrow_device_abi::{CopyOptions, HostMemory, Limits, NoWait, OwnedArray, OwnedDeviceArray, OwnedSchema};
use hostile::{Arena, Input, Pair};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut arena = Arena::default();
    let Pair { schema, array } = Pair::new(&mut Input::new(bytes), &mut arena);
    // SAFETY: structs of the arena. They obey the interface as far as `hostile` says, and are released before it is gone.
    let (Ok(schema), Ok(array)) = (unsafe { (OwnedSchema::take(schema), OwnedArray::take(array)) }) else {
        return;
    };
    let limits = Limits::DEFAULT.with_depth(24).with_nodes(500);
    let _ = schema.validate(&limits).map_err(|invalid| invalid.to_string());
    let Ok(schema) = schema.view() else { return };
    let structure = array.validate(schema, &limits);
    // SAFETY: the schema is the array's own.
    let contents = unsafe { array.validate_contents(schema, &limits) };
    for invalid in [&structure, &contents].into_iter().filter_map(|found| found.as_ref().err()) {
        assert!(!invalid.to_string().is_empty() && !invalid.path().is_empty());
    }
    assert!(structure.is_ok() || contents == structure, "{structure:?} {contents:?}");

    let array = OwnedDeviceArray::from(array);
    assert_eq!(array.validate(schema, &limits), structure);
    let Ok(ready) = array.synchronize(&NoWait) else { return };
    // SAFETY: the schema is the array's own.
    assert_eq!(unsafe { ready.validate_contents(schema, &limits) }, contents);
    // SAFETY: the schema is the array's own.
    let sizes = unsafe { ready.buffer_sizes(schema, &HostMemory, &limits) };
    assert!(sizes.is_ok() || contents.is_err());
    let options = || CopyOptions::new().limits(limits);
    for options in [options(), options().trimmed()] {
        // SAFETY: the schema is the array's own.
        let copy = unsafe { ready.to_host(schema, &HostMemory, options) };
        match copy {
            // What was valid still is; what was not may have been cut off, or counted.
            Ok(copy) => {
                // SAFETY: the schema is the array's own.
                let copied = unsafe { copy.validate_contents(schema, &limits) };
                assert!(copied.is_ok() || contents.is_err(), "{copied:?}");
            }
            Err(error) => assert!(contents.is_err(), "{error}"),
        }
    }
});
