//! [`SchemaNode`]: schemas.

use core::ffi::c_char;
use core::ptr;

use super::array::count;
use super::tree::{Export, build, described, tree_struct};
use super::{ExportError, ExportErrorKind};
use crate::format::Format;
use crate::owned::OwnedSchema;
use crate::raw::{ARROW_FLAG_NULLABLE, ArrowSchema};
use crate::view::{Metadata, SchemaView};
use crate::walk::Node;

/// The description of a schema, borrowed while it is exported.
///
/// `Default` is a nullable field of type `n`, without a name.
///
/// ```
/// use arrow_device_abi::SchemaNode;
///
/// let schema = SchemaNode {
///     format: "+s",
///     children: &[SchemaNode { format: "i", name: Some("id"), ..Default::default() }],
///     ..Default::default()
/// }
/// .export()?;
/// assert_eq!(schema.view()?.child(0)?.name()?, Some("id"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A format with numbers in it is more easily made by a [`Format`], which refuses what its type does not allow:
///
/// ```
/// use arrow_device_abi::SchemaNode;
/// use arrow_device_abi::format::{DecimalBits, Format};
///
/// let format = Format::decimal(12, 2, DecimalBits::Bits64)?.to_string();
/// let price = SchemaNode { format: &format, name: Some("price"), ..Default::default() }.export()?;
/// assert_eq!(price.view()?.format()?, "d:12,2,64");
/// assert!(Format::decimal(19, 2, DecimalBits::Bits64).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SchemaNode<'a> {
    /// The format string, written by hand or by a [`Format`].
    pub format: &'a str,
    /// The field's name. `None` is a null pointer, which consumers read as an empty name.
    pub name: Option<&'a str>,
    /// Pairs of key and value. None at all is a null pointer (B9). Their lengths are written beside them, so they may
    /// hold any bytes, NUL too.
    pub metadata: &'a [(&'a [u8], &'a [u8])],
    /// Bits of `ARROW_FLAG_*`.
    pub flags: i64,
    /// The children.
    pub children: &'a [SchemaNode<'a>],
    /// The type of the dictionary's values, if the field is dictionary-encoded; `format` is that of the indices.
    pub dictionary: Option<&'a SchemaNode<'a>>,
}

impl Default for SchemaNode<'_> {
    fn default() -> Self {
        Self {
            format: "n",
            name: None,
            metadata: &[],
            flags: ARROW_FLAG_NULLABLE,
            children: &[],
            dictionary: None,
        }
    }
}

impl SchemaNode<'_> {
    /// Makes the C tree, in one allocation, with copies of all texts.
    ///
    /// A format that [`Format::parse`] knows has to be one that it allows, with as many children as its type has; one
    /// that it does not know is passed on.
    ///
    /// # Errors
    ///
    /// An [`ExportErrorKind`] if a format or name holds a NUL byte, a format is empty or impossible, its number of
    /// children is wrong, metadata is longer than its encoding can say, or memory is short.
    pub fn export(&self) -> Result<OwnedSchema, ExportErrorKind> {
        export(self)
    }
}

impl OwnedSchema {
    /// A deep copy, in one allocation, which owes the original nothing.
    ///
    /// # Errors
    ///
    /// [`ExportErrorKind::View`] if the original is released or malformed, [`ExportErrorKind::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, ExportErrorKind> {
        export(self.view().map_err(ExportErrorKind::View)?)
    }
}

fn export(root: impl Export<Struct = ArrowSchema>) -> Result<OwnedSchema, ExportErrorKind> {
    let (raw, _) = build(root, ()).map_err(|ExportError { kind, .. }| kind)?;
    // SAFETY: a live tree that obeys the interface and owns all that it points to; nobody else has it.
    Ok(unsafe { OwnedSchema::adopt(raw) })
}

/// The texts of a node, from a description or from another schema.
struct Texts<'a, M> {
    format: &'a [u8],
    name: Option<&'a [u8]>,
    metadata: M,
    flags: i64,
    n_children: usize,
}

/// Bytes of each number in encoded metadata.
const NUMBER: usize = size_of::<i32>();

impl<'a, M: ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone> Texts<'a, M> {
    fn measure(self) -> Result<usize, ExportErrorKind> {
        let encoded = |text: &[u8]| {
            i32::try_from(text.len()).map_err(|_| ExportErrorKind::TooLarge)?;
            Ok(text.len().saturating_add(NUMBER))
        };
        let mut size = self.format.len().saturating_add(1);
        size = size.saturating_add(self.name.map_or(0, |name| name.len().saturating_add(1)));
        if self.metadata.len() > 0 {
            i32::try_from(self.metadata.len()).map_err(|_| ExportErrorKind::TooLarge)?;
            size = size.saturating_add(NUMBER);
            for (key, value) in self.metadata {
                size = size.saturating_add(encoded(key)?).saturating_add(encoded(value)?);
            }
        }
        Ok(size)
    }

    /// Writes what `measure` measured, and the struct.
    ///
    /// # Safety
    ///
    /// - `data` is valid for writes of that many bytes.
    /// - `node` is valid for writes and aligned.
    unsafe fn write(self, node: *mut ArrowSchema, data: *mut u8) -> *mut u8 {
        let mut cursor = Cursor(data);
        // SAFETY: for all of them: `measure` counted these bytes, in this order.
        let format = unsafe { cursor.c_text(self.format) };
        let name = match self.name {
            // SAFETY: as above.
            Some(name) => unsafe { cursor.c_text(name) },
            None => ptr::null(),
        };
        let mut metadata = ptr::null();
        if self.metadata.len() > 0 {
            metadata = cursor.0.cast_const().cast();
            // SAFETY: as above.
            unsafe { cursor.number(self.metadata.len()) };
            for text in self.metadata.flat_map(|(key, value)| [key, value]) {
                // SAFETY: as above.
                unsafe { cursor.number(text.len()) };
                // SAFETY: as above.
                unsafe { cursor.bytes(text) };
            }
        }
        let schema = ArrowSchema {
            format,
            name,
            metadata,
            flags: self.flags,
            n_children: count(self.n_children),
            ..ArrowSchema::released()
        };
        // SAFETY: valid and aligned, as the caller promises.
        unsafe { node.write(schema) };
        cursor.0
    }
}

/// Where the next byte goes.
struct Cursor(*mut u8);

impl Cursor {
    /// # Safety
    ///
    /// - The cursor is valid for writes of as many bytes.
    unsafe fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: valid as the caller promises; the block is new, so nothing borrowed overlaps it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, bytes.len()) };
        self.0 = self.0.wrapping_add(bytes.len());
    }

    /// # Safety
    ///
    /// - The cursor is valid for writes of as many bytes and one more.
    unsafe fn c_text(&mut self, text: &[u8]) -> *const c_char {
        let start = self.0;
        // SAFETY: as the caller promises.
        unsafe { self.bytes(text) };
        // SAFETY: as the caller promises.
        unsafe { self.0.write(0) };
        self.0 = self.0.wrapping_add(1);
        start.cast_const().cast()
    }

    /// # Safety
    ///
    /// - The cursor is valid for writes of four bytes.
    unsafe fn number(&mut self, number: usize) {
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        // SAFETY: as the caller promises.
        unsafe { self.bytes(&number.to_ne_bytes()) };
    }
}

impl<'a> SchemaNode<'a> {
    fn texts(&self) -> Texts<'a, impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a>> {
        Texts {
            format: self.format.as_bytes(),
            name: self.name.map(str::as_bytes),
            metadata: self.metadata.iter().copied(),
            flags: self.flags,
            n_children: self.children.len(),
        }
    }
}

described!(SchemaNode);

impl Export for &SchemaNode<'_> {
    type Struct = ArrowSchema;

    fn measure(self) -> Result<usize, ExportErrorKind> {
        if self.format.is_empty() {
            return Err(ExportErrorKind::Format("the format is empty"));
        }
        let nul = |text: &str| text.as_bytes().contains(&0);
        if nul(self.format) {
            return Err(ExportErrorKind::Nul { field: "format" });
        }
        if self.name.is_some_and(nul) {
            return Err(ExportErrorKind::Nul { field: "name" });
        }
        match Format::parse(self.format) {
            Ok(format) if !format.children().allows(self.children.len()) => {
                return Err(ExportErrorKind::Children { found: self.children.len() });
            }
            Err(error) if !error.is_unknown() => return Err(ExportErrorKind::Format(error.problem())),
            _ => {}
        }
        self.texts().measure()
    }

    unsafe fn write(self, node: *mut ArrowSchema, data: *mut u8) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { self.texts().write(node, data) }
    }
}

/// A schema to copy, whoever made it. Nothing is judged that its owner accepted.
impl<'a> SchemaView<'a> {
    fn texts(
        &self,
        metadata: Metadata<'a>,
    ) -> Texts<'a, impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a>> {
        Texts {
            format: self.format_bytes(),
            name: self.name_bytes(),
            metadata: metadata.iter(),
            flags: self.flags(),
            n_children: SchemaView::n_children(self),
        }
    }
}

impl Node for SchemaView<'_> {
    type Error = ExportErrorKind;

    fn out_of_memory() -> ExportErrorKind {
        ExportErrorKind::OutOfMemory
    }

    fn n_children(self) -> usize {
        SchemaView::n_children(&self)
    }

    fn has_dictionary(self) -> bool {
        !self.as_raw().dictionary.is_null()
    }

    fn child(self, index: usize) -> Result<Self, ExportErrorKind> {
        SchemaView::child(&self, index).map_err(ExportErrorKind::View)
    }

    fn dictionary(self) -> Result<Option<Self>, ExportErrorKind> {
        SchemaView::dictionary(&self).map_err(ExportErrorKind::View)
    }
}

impl Export for SchemaView<'_> {
    type Struct = ArrowSchema;

    fn measure(self) -> Result<usize, ExportErrorKind> {
        self.texts(self.metadata().map_err(ExportErrorKind::View)?).measure()
    }

    unsafe fn write(self, node: *mut ArrowSchema, data: *mut u8) -> *mut u8 {
        // `measure` saw to it that the metadata can be read.
        // SAFETY: as the caller promises.
        unsafe { self.texts(self.metadata().unwrap_or_default()).write(node, data) }
    }
}
tree_struct!(ArrowSchema);
