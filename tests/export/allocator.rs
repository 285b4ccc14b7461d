//! An allocator that counts what one thread does between two moments, remembers the layouts, and fails when told to.

use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;
use std::cell::RefCell;

/// What happened while something was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub allocated: usize,
    pub freed: usize,
    /// Frees with another layout than the allocation's, or of what was not allocated while counting.
    pub wrong: usize,
}

struct Log {
    counting: bool,
    counts: Counts,
    /// Which of the next allocations fails; 0 for none.
    fails: usize,
    /// What is allocated and not freed.
    live: [(usize, Option<Layout>); 64],
}

thread_local! {
    static LOG: RefCell<Log> = const {
        RefCell::new(Log {
            counting: false,
            counts: Counts { allocated: 0, freed: 0, wrong: 0 },
            fails: 0,
            live: [(0, None); 64],
        })
    };
}

/// Counts the allocations and frees of this thread during `f`.
pub fn counting<R>(f: impl FnOnce() -> R) -> (R, Counts) {
    failing_at(0, f)
}

/// As `counting`; one allocation, the first being 1, gives null.
pub fn failing_at<R>(which: usize, f: impl FnOnce() -> R) -> (R, Counts) {
    LOG.with_borrow_mut(|log| (log.counting, log.counts, log.fails) = (true, Counts::default(), which));
    let result = f();
    let counts = LOG.with_borrow_mut(|log| {
        log.counting = false;
        log.counts
    });
    (result, counts)
}

/// How many blocks were allocated while counting, and are not freed.
pub fn live() -> usize {
    LOG.with_borrow(|log| log.live.iter().filter(|(_, layout)| layout.is_some()).count())
}

/// A thread's log may be gone at its exit.
fn with_log(f: impl FnOnce(&mut Log)) {
    let _ = LOG.try_with(|log| {
        let mut log = log.borrow_mut();
        if log.counting {
            f(&mut log);
        }
    });
}

pub struct Counting;

// SAFETY: the system's allocator, or null, which is allowed to it; the log allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut fails = false;
        with_log(|log| {
            fails = log.fails == 1;
            log.fails = log.fails.saturating_sub(1);
        });
        if fails {
            return core::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        let block = unsafe { System.alloc(layout) };
        with_log(|log| {
            log.counts.allocated += 1;
            let free = log.live.iter_mut().find(|(_, layout)| layout.is_none());
            *free.expect("room for each block") = (block.addr(), Some(layout));
        });
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        with_log(|log| {
            log.counts.freed += 1;
            match log.live.iter_mut().find(|live| **live == (block.addr(), Some(layout))) {
                Some(live) => *live = (0, None),
                None => log.counts.wrong += 1,
            }
        });
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) };
    }
}
