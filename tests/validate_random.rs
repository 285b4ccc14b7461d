//! Random arrays of every type: those that are valid pass, and what is done to them is found.

mod arrays;
mod common;
mod export;

use arrow_device_abi::{Invalid, Limits};

use arrays::Rng;
use arrays::changes::{Breaks, Changed, all, changed};

/// Schema, structure, contents.
fn verdicts(changed: &Changed) -> [Result<(), Invalid>; 3] {
    let limits = Limits::DEFAULT;
    let valid = changed.schema.validate(&limits);
    match changed.schema.view() {
        Ok(schema) => {
            // SAFETY: the schema is the array's own.
            [valid, changed.array.validate(schema, &limits), unsafe {
                changed.array.validate_contents(schema, &limits)
            }]
        }
        Err(_) => [valid.clone(), valid.clone(), valid],
    }
}

const TIMES: u64 = if cfg!(miri) { 2 } else { 60 };

/// B7, B8, C7, C23: an array that follows the rules is valid, whatever its type.
#[test]
fn valid_arrays_are_valid() {
    for seed in 0..10 * TIMES {
        let Changed { tree, schema, array } = changed(&mut Rng::new(seed), None).unwrap();
        let schema = schema.view().unwrap();
        assert_eq!(schema.validate(&Limits::DEFAULT), Ok(()), "{seed}: {tree:?}");
        assert_eq!(array.validate(schema, &Limits::DEFAULT), Ok(()), "{seed}: {tree:?}");
        // SAFETY: the schema is the array's own.
        assert_eq!(unsafe { array.validate_contents(schema, &Limits::DEFAULT) }, Ok(()), "{seed}: {tree:?}");
    }
}

/// B7, B8, C7, C24, C25, C26, C27: each change of a valid array that breaks a rule is found where it can be, by the first
/// check that can see it; what breaks none is not.
#[test]
fn every_change_is_judged() {
    for change in all() {
        let mut done = 0;
        // A change that needs a rare node takes some looking for one.
        for seed in 0..100 * TIMES {
            let Some(changed) = changed(&mut Rng::new(seed), Some(change)) else { continue };
            let found = verdicts(&changed);
            let what = format!("{change:?}, seed {seed}: {found:?}, {:?}", changed.tree);
            let good = found.each_ref().map(Result::is_ok);
            match change.breaks {
                Breaks::Nothing => assert_eq!(good, [true; 3], "{what}"),
                Breaks::Schema => assert!(!good[0], "{what}"),
                Breaks::Structure => assert_eq!(good, [true, false, false], "{what}"),
                Breaks::Contents => assert_eq!(good, [true, true, false], "{what}"),
            }
            done += 1;
            if done == TIMES {
                break;
            }
        }
        assert!(done >= TIMES / 6, "{}: done {done} times", change.name);
    }
}
