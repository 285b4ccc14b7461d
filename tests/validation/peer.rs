//! Cases for other implementations to judge, and the comparison with what the crate says: what `peer.h` declares.
//!
//! A case is a number: it is made anew from it wherever it is looked at.

#[path = "../arrays/mod.rs"]
mod arrays;
#[path = "../common/mod.rs"]
mod common;
mod explained;
#[path = "../export/mod.rs"]
mod export;

use core::ffi::{CStr, c_char, c_int};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use arrow_device_abi::raw::{ArrowArray, ArrowDeviceArray, ArrowSchema};
use arrow_device_abi::{
    CopyOptions, HostMemory, Invalid, Limits, NoWait, OwnedArray, OwnedDeviceArray, OwnedSchema,
};

use arrays::Rng;
use arrays::changes::{Breaks, Change, Changed, all, changed};
use explained::{EXPLAINED, Verdict};

/// How many arrays there are to which nothing was done, and to which each of the changes was.
const UNCHANGED: usize = 3000;
const EACH: usize = 60;

/// Change and seed of every case.
static CASES: LazyLock<Vec<(Option<Change>, u64)>> = LazyLock::new(|| {
    let mut cases: Vec<_> = (0..UNCHANGED as u64).map(|seed| (None, seed)).collect();
    for change in all() {
        let seeds = (0..20_000).filter(|seed| changed(&mut Rng::new(*seed), Some(change)).is_some());
        cases.extend(seeds.take(EACH).map(|seed| (Some(change), seed)));
    }
    cases
});

/// How often each outcome was seen: change, what Rust says, what the peer says, which explanation.
type Seen = BTreeMap<(&'static str, Verdict, Verdict, Option<usize>), usize>;
static SEEN: Mutex<Seen> = Mutex::new(BTreeMap::new());

fn case(index: i64) -> (Option<Change>, Changed) {
    let (change, seed) = CASES[usize::try_from(index).expect("an index of a case")];
    (change, changed(&mut Rng::new(seed), change).expect("a case that can be made"))
}

fn judged(changed: &Changed) -> Result<(), Invalid> {
    let limits = Limits::DEFAULT;
    changed.schema.validate(&limits)?;
    match changed.schema.view() {
        // SAFETY: the schema is the array's own.
        Ok(schema) => unsafe { changed.array.validate_contents(schema, &limits) },
        Err(_) => unreachable!("a valid schema can be viewed"),
    }
}

/// See `peer.h`.
#[unsafe(no_mangle)]
pub extern "C" fn validation_cases() -> i64 {
    CASES.len() as i64
}

/// See `peer.h`.
///
/// # Safety
///
/// - `schema` and `array` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn validation_case(index: i64, schema: *mut ArrowSchema, array: *mut ArrowArray) {
    let (_, changed) = case(index);
    // SAFETY: valid for writes as the caller promises.
    unsafe { changed.schema.export_to(schema) };
    // SAFETY: as above.
    unsafe { changed.array.export_to(array) };
}

/// # Safety
///
/// - `text` ends in NUL.
unsafe fn text<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// See `peer.h`.
///
/// # Safety
///
/// - `peer` and `message` end in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn validation_judge(
    index: i64,
    peer: *const c_char,
    verdict: c_int,
    message: *const c_char,
) -> c_int {
    // SAFETY: they end in NUL as the caller promises.
    let (peer, message) = unsafe { (text(peer), text(message)) };
    // For the run that has to find a difference: the first case is valid.
    let spoilt = index == 0 && std::env::var_os("VALIDATION_SPOIL").is_some();
    let theirs = match verdict {
        _ if spoilt => Verdict::Refused,
        0 => Verdict::Refused,
        1 => Verdict::Accepted,
        _ => Verdict::Crashed,
    };
    let (change, changed) = case(index);
    let found = judged(&changed);
    let ours = if found.is_ok() { Verdict::Accepted } else { Verdict::Refused };
    let name = change.map_or("nothing", |change| change.name);
    let intended = change.is_none_or(|change| change.breaks == Breaks::Nothing);
    let explanation = EXPLAINED.iter().position(|explained| {
        peer.starts_with(explained.peer)
            && (explained.change.is_empty() || explained.change.contains(&name))
            && explained.verdict == theirs
            && (explained.when)(&changed.tree, &message)
    });
    let explanation = explanation.filter(|_| ours != theirs);
    *SEEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry((name, ours, theirs, explanation))
        .or_default() += 1;
    if intended == found.is_ok() && (ours == theirs || explanation.is_some()) {
        return 0;
    }
    println!(
        "unexplained: case {index}, {name}\n  Rust: {}\n  {peer}: {theirs:?} {message}\n  {:?}",
        found.map_or_else(|invalid| invalid.to_string(), |()| "valid".into()),
        changed.tree
    );
    1
}

/// See `peer.h`.
///
/// # Safety
///
/// - `peer` ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn validation_finish(peer: *const c_char) -> c_int {
    // SAFETY: it ends in NUL as the caller promises.
    let peer = unsafe { text(peer) };
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut agreed, mut explained) = (0, 0);
    let mut used = BTreeMap::new();
    for ((name, ours, theirs, explanation), times) in &*seen {
        match explanation {
            None if ours == theirs => agreed += times,
            None => println!("unexplained: {times} times, {name}: Rust {ours:?}, {peer} {theirs:?}"),
            Some(index) => {
                explained += times;
                used.entry(*index).or_insert_with(Vec::new).push(format!("{name} ({times})"));
            }
        }
    }
    for (index, names) in &used {
        println!(
            "explained: {peer} has {:?}: {}: {}",
            EXPLAINED[*index].verdict,
            names.join(", "),
            EXPLAINED[*index].why
        );
    }
    let mut unused = 0;
    for (index, explanation) in EXPLAINED.iter().enumerate() {
        if peer.starts_with(explanation.peer) && !used.contains_key(&index) {
            println!("not needed: {peer}, {:?}: {}", explanation.change, explanation.why);
            unused += 1;
        }
    }
    println!("peer: {peer} and Rust on {} arrays: {agreed} judged alike, {explained} explained", CASES.len());
    unused
}

/// Copies a batch on the CPU, and gives the copy as one.
///
/// # Safety
///
/// - `schema` and `array` are live, and the caller gives them away; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn validation_copy(
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
    out: *mut ArrowDeviceArray,
    trim: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let taken = unsafe { (OwnedSchema::take(schema), OwnedDeviceArray::take(array)) };
    let copy = || -> Result<OwnedArray, Box<dyn std::error::Error>> {
        let (schema, array) = (taken.0?, taken.1?.synchronize(&NoWait)?);
        let options = if trim == 0 { CopyOptions::new() } else { CopyOptions::new().trimmed() };
        // SAFETY: the schema is the array's own.
        Ok(unsafe { array.to_host(schema.view()?, &HostMemory, options) }?)
    };
    match copy() {
        Ok(copy) => {
            // SAFETY: valid for writes as the caller promises.
            unsafe { OwnedDeviceArray::from(copy).export_to(out) };
            0
        }
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}
