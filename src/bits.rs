//! Bytes of buffers as bits and numbers, at any alignment (C27).

/// The validity of an array's elements.
#[derive(Clone, Copy)]
pub(crate) struct Validity<'a> {
    /// `None` if there is no bitmap: all are valid.
    bits: Option<&'a [u8]>,
    offset: usize,
}

impl<'a> Validity<'a> {
    pub(crate) const fn new(bits: Option<&'a [u8]>, offset: usize) -> Self {
        Self { bits, offset }
    }

    pub(crate) fn is_valid(self, element: usize) -> bool {
        let Some(bits) = self.bits else {
            return true;
        };
        let at = self.offset.saturating_add(element);
        bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }

    /// How many of the first `length` elements are null.
    pub(crate) fn nulls(self, length: usize) -> usize {
        self.bits.map_or(0, |bits| length.saturating_sub(count_ones(bits, self.offset, length)))
    }
}

/// How many of the `length` bits from `offset` on are set.
pub(crate) fn count_ones(bits: &[u8], offset: usize, length: usize) -> usize {
    let end = offset.saturating_add(length);
    let ones = |byte: u8| byte.count_ones() as usize;
    // The whole bytes that bits of the range are in, less the bits around it.
    let bytes = bits.get(offset / 8..end.div_ceil(8)).unwrap_or_default();
    let before = bytes.first().map_or(0, |first| ones(first & !(u8::MAX << (offset % 8))));
    let after = match (bytes.last(), end % 8) {
        (Some(last), 1..) => ones(last & u8::MAX << (end % 8)),
        _ => 0,
    };
    let words = u64::all(bytes).map(|word| word.count_ones() as usize).sum::<usize>();
    let rest = bytes.chunks_exact(size_of::<u64>()).remainder().iter();
    let all = rest.map(|byte| ones(*byte)).sum::<usize>().saturating_add(words);
    all.saturating_sub(before).saturating_sub(after)
}

/// An integer in a buffer.
pub(crate) trait Number: Copy + Into<i128> {
    /// Reads one from as many bytes as it has.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Writes it into as many bytes as it has.
    fn write(self, bytes: &mut [u8]);

    /// All of a buffer's.
    fn all(bytes: &[u8]) -> impl ExactSizeIterator<Item = Self> {
        // Chunks of this size can be read.
        bytes.chunks_exact(size_of::<Self>()).map(|chunk| Self::read(chunk).unwrap_or(Self::ZERO))
    }

    /// What stands for a number that cannot be read, which there is none of.
    const ZERO: Self;
}

macro_rules! numbers {
    ($($number:ident),+) => { $(
        impl Number for $number {
            const ZERO: Self = 0;

            #[inline]
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_ne_bytes)
            }

            fn write(self, bytes: &mut [u8]) {
                if let Some(bytes) = bytes.first_chunk_mut() {
                    *bytes = self.to_ne_bytes();
                }
            }
        }
    )+ };
}
numbers!(i8, u8, i16, u16, i32, u32, i64, u64);
