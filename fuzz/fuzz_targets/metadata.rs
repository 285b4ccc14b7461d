//! Metadata, at any alignment, against a reader that knows where it ends.
#![no_main]

use arrow_device_abi::Metadata;
use libfuzzer_sys::fuzz_target;

/// Takes a number; `None` if there is none any more.
fn number(rest: &mut &[u8]) -> Option<i32> {
    let (number, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(i32::from_ne_bytes(*number))
}

/// The pairs; `None` if the bytes end before they do, and an error if a number is negative.
#[allow(clippy::type_complexity)]
fn pairs(mut rest: &[u8]) -> Option<Result<Vec<[&[u8]; 2]>, ()>> {
    let Ok(count) = usize::try_from(number(&mut rest)?) else { return Some(Err(())) };
    let mut pairs = Vec::new();
    for _ in 0..count {
        let mut pair: [&[u8]; 2] = Default::default();
        for text in &mut pair {
            let Ok(length) = usize::try_from(number(&mut rest)?) else { return Some(Err(())) };
            let (found, others) = rest.split_at_checked(length)?;
            (*text, rest) = (found, others);
        }
        pairs.push(pair);
    }
    Some(Ok(pairs))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((at, bytes)) = bytes.split_first() else { return };
    let Some(expected) = pairs(bytes) else { return };
    // To the last byte, and at any alignment.
    let at = usize::from(at % 8);
    let moved: Box<[u8]> = core::iter::repeat_n(&0, at).chain(bytes).copied().collect();
    // SAFETY: `pairs` has seen that the bytes are metadata to the end, or to a number that is negative.
    let found = unsafe { Metadata::from_ptr(moved[at..].as_ptr().cast()) };
    match (found, expected) {
        (Ok(found), Ok(expected)) => {
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().map(|(key, value)| [key, value]).eq(expected.iter().copied()));
            for [key, _] in &expected {
                let first = expected.iter().find(|pair| pair[0] == *key).map(|pair| pair[1]);
                assert_eq!(found.get(key), first);
            }
        }
        (Err(_), Err(())) => {}
        (found, expected) => panic!("{found:?} {expected:?}"),
    }
});
