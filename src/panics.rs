//! Panics of the user's code end before C.
//!
//! A panic that reached an `extern "C"` function would abort the process. With feature `std` it is caught here and
//! becomes an error, or nothing where C asks for no answer; without it there is nothing to catch it with.

#[cfg(feature = "std")]
mod caught {
    use alloc::boxed::Box;
    use alloc::string::String;
    use core::any::Any;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// What a panic was raised with.
    pub(crate) struct Panic(Option<Box<dyn Any + Send>>);

    impl Panic {
        pub(crate) fn text(&self) -> &str {
            let payload = self.0.as_deref();
            payload
                .and_then(|payload| payload.downcast_ref::<&str>().copied())
                .or_else(|| payload.and_then(|payload| payload.downcast_ref::<String>()).map(String::as_str))
                .unwrap_or("no text")
        }
    }

    impl Drop for Panic {
        fn drop(&mut self) {
            let payload = self.0.take();
            // The payload is the user's too, and may panic when it is dropped; one that does is let go.
            if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                core::mem::forget(second);
            }
        }
    }

    /// Runs `f`, and gives the panic if it does.
    ///
    /// What `f` borrows is not used again after a panic, or can be whatever it was left as.
    pub(crate) fn contain<T>(f: impl FnOnce() -> T) -> Result<T, Panic> {
        catch_unwind(AssertUnwindSafe(f)).map_err(|payload| Panic(Some(payload)))
    }
}

#[cfg(not(feature = "std"))]
mod caught {
    /// No panic is caught.
    pub(crate) enum Panic {}

    impl Panic {
        pub(crate) fn text(&self) -> &str {
            match *self {}
        }
    }

    /// Runs `f`.
    #[allow(clippy::unnecessary_wraps, reason = "the same signature as with `std`")]
    pub(crate) fn contain<T>(f: impl FnOnce() -> T) -> Result<T, Panic> {
        Ok(f())
    }
}

pub(crate) use caught::{Panic, contain};
