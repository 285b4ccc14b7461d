//! Who implements these makes promises.

use arrow_device_abi::{Device, EventWaiter, Readiness, Release, SyncEvent};

struct Mine;

impl EventWaiter for Mine {
    //~^ E0200
    type Error = ();

    fn wait(&self, _: Device, _: SyncEvent<'_>) -> Result<Readiness, ()> {
        Ok(Readiness::Complete)
    }
}

impl Release for Mine {
    //~^ E0200
    fn released() -> Self {
        Mine
    }

    fn is_released(&self) -> bool {
        false
    }

    fn mark_released(&mut self) {}

    unsafe fn release(_: *mut Self) {}
}

fn main() {}
