//! Views of strings and binary values.

use super::Fault;
use super::contents::{Contents, between};
use super::structure::end;
use crate::bits::{Number, Validity};

/// A view as it stands in its buffer: a size, then the value itself if it is short, else its first four bytes, the index
/// of a data buffer, and where it begins there.
type View = [[u8; 4]; 4];

/// Checks the data buffers, and the views of all elements that are not null.
pub(super) fn check(node: Contents<'_>, validity: Validity<'_>, is_text: bool) -> Result<(), Fault> {
    let data = Data::new(node)?;
    let views = node.bytes(1, end(node.array).saturating_mul(size_of::<View>()))?;
    let views = views.chunks_exact(size_of::<View>()).skip(node.array.offset());
    for (element, view) in views.enumerate() {
        if validity.is_valid(element) {
            let value = data.value(element, view)?;
            if is_text && core::str::from_utf8(value).is_err() {
                return Err(Fault::Utf8 { element });
            }
        }
    }
    Ok(())
}

/// The data buffers of a node.
struct Data<'a> {
    node: Contents<'a>,
    /// As many sizes as data buffers, checked.
    sizes: &'a [u8],
    count: usize,
}

/// The data buffers begin behind validity and views.
const FIRST: usize = 2;

impl<'a> Data<'a> {
    fn new(node: Contents<'a>) -> Result<Self, Fault> {
        // Their sizes are in the last buffer.
        let last = node.array.buffers().len().saturating_sub(1);
        let count = last.saturating_sub(FIRST);
        let sizes = node.bytes(last, count.saturating_mul(size_of::<i64>()))?;
        for (index, size) in i64::all(sizes).enumerate() {
            between("size of the data buffer", index, size.into(), 0, isize::MAX as i128)?;
            node.bytes(FIRST.saturating_add(index), usize::try_from(size).unwrap_or_default())?;
        }
        Ok(Self { node, sizes, count })
    }

    /// The bytes of the data buffer with this index.
    fn buffer(&self, index: usize) -> Result<&'a [u8], Fault> {
        let width = size_of::<i64>();
        let from = index.saturating_mul(width);
        let size = self.sizes.get(from..from.saturating_add(width)).and_then(i64::read).unwrap_or_default();
        // `new` has seen that it is one.
        self.node.bytes(FIRST.saturating_add(index), usize::try_from(size).unwrap_or_default())
    }

    /// The bytes of an element, which are in its view or behind it.
    fn value(&self, element: usize, view: &'a [u8]) -> Result<&'a [u8], Fault> {
        let number = |at: usize| view.get(at..at.saturating_add(4)).and_then(i32::read).unwrap_or_default();
        let size = number(0);
        between("size of the view", element, size.into(), 0, i32::MAX.into())?;
        let size = usize::try_from(size).unwrap_or_default();
        let inline = view.get(4..).unwrap_or_default();
        if let Some((value, padding)) = inline.split_at_checked(size) {
            let is_filled_up = padding.iter().all(|byte| *byte == 0);
            return if is_filled_up { Ok(value) } else { Err(Fault::Padding { element }) };
        }
        let (prefix, index, start) = (inline.get(..4).unwrap_or_default(), number(8), number(12));
        let last = (self.count as i128).saturating_sub(1);
        between("data buffer of the view", element, index.into(), 0, last)?;
        let data = self.buffer(usize::try_from(index).unwrap_or_default())?;
        let most = (data.len() as i128).saturating_sub(size as i128);
        between("offset of the view", element, start.into(), 0, most)?;
        let start = usize::try_from(start).unwrap_or_default();
        let value = data.get(start..start.saturating_add(size)).unwrap_or_default();
        if value.starts_with(prefix) { Ok(value) } else { Err(Fault::Prefix { element }) }
    }
}
