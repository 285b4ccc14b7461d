//! The fuzzer's bytes.

/// Bytes that are taken one after the other; zeros when there are no more.
#[derive(Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many bytes.
    pub fn bytes(&mut self, count: usize) -> Box<[u8]> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// A small number, mostly as large as `near`, or one from the edge.
    pub fn number(&mut self, near: i64) -> i64 {
        match self.byte() {
            0..=127 => near,
            byte @ 128..=223 => i64::from(byte - 128),
            224..=239 => -i64::from(self.byte()),
            240 => i64::MAX,
            241 => i64::MIN,
            242 => i64::MAX / 2 + 1,
            243 => i64::from(i32::MAX),
            244 => i64::from(u32::MAX) + 1,
            _ => near.wrapping_add(i64::from(self.byte())).wrapping_sub(128),
        }
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }
}
