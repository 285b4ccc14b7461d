//! Nothing but the tests in `tests/`.
