//! The trees that are checked, and the way to a node as text.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt::Write;

use super::{Fault, Invalid};
use crate::view::{ArrayView, SchemaView, ViewError};
use crate::walk::{Link, Node};

/// A node of a schema.
#[derive(Clone, Copy)]
pub(super) struct Field<'a>(pub(super) SchemaView<'a>);

/// A node of an array with that of its schema.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) schema: SchemaView<'a>,
    pub(super) array: ArrayView<'a>,
}

impl Node for Field<'_> {
    type Error = Invalid;

    fn out_of_memory() -> Invalid {
        Fault::OutOfMemory.into()
    }

    fn n_children(self) -> usize {
        SchemaView::n_children(&self.0)
    }

    fn has_dictionary(self) -> bool {
        !self.0.as_raw().dictionary.is_null()
    }

    fn child(self, index: usize) -> Result<Self, Invalid> {
        Ok(Self(SchemaView::child(&self.0, index).map_err(Fault::Schema)?))
    }

    fn dictionary(self) -> Result<Option<Self>, Invalid> {
        Ok(SchemaView::dictionary(&self.0).map_err(Fault::Schema)?.map(Self))
    }
}

/// A pair is entered only if both have as many children, and a dictionary or not.
impl Node for Pair<'_> {
    type Error = Invalid;

    fn out_of_memory() -> Invalid {
        Fault::OutOfMemory.into()
    }

    fn n_children(self) -> usize {
        self.array.n_children()
    }

    fn has_dictionary(self) -> bool {
        !self.array.as_raw().dictionary.is_null()
    }

    #[inline]
    fn child(self, index: usize) -> Result<Self, Invalid> {
        Ok(Self {
            schema: SchemaView::child(&self.schema, index).map_err(Fault::Schema)?,
            array: self.array.child(index).map_err(Fault::Array)?,
        })
    }

    fn dictionary(self) -> Result<Option<Self>, Invalid> {
        let schema = SchemaView::dictionary(&self.schema).map_err(Fault::Schema)?;
        let array = self.array.dictionary().map_err(Fault::Array)?;
        Ok(schema.zip(array).map(|(schema, array)| Self { schema, array }))
    }
}

impl Invalid {
    /// A fault of the root, which has its schema's name.
    #[cold]
    pub(super) fn at_root(fault: Fault, root: Option<SchemaView<'_>>) -> Self {
        Self::from(fault).at(root_name(root))
    }
}

fn root_name(root: Option<SchemaView<'_>>) -> String {
    root.and_then(|root| name(Ok(root))).unwrap_or_else(|| "root".to_owned())
}

/// The way to the node where a check failed.
#[cold]
pub(crate) fn path<'a>(root: SchemaView<'a>, way: impl Iterator<Item = (SchemaView<'a>, Link)>) -> String {
    let mut path = root_name(Some(root));
    for (parent, link) in way {
        // Writing into a string cannot fail.
        let _ = match link {
            Link::Child(index) => match name(SchemaView::child(&parent, index)) {
                Some(name) => write!(path, ".{name}[{index}]"),
                None => write!(path, "[{index}]"),
            },
            Link::Dictionary => write!(path, ".dictionary"),
        };
    }
    path
}

/// A name fit to be shown, if there is one.
fn name(schema: Result<SchemaView<'_>, ViewError>) -> Option<String> {
    let name = schema.ok()?.name_bytes().filter(|name| !name.is_empty())?;
    Some(match core::str::from_utf8(name) {
        Ok(name) => name.escape_debug().collect(),
        Err(_) => name.escape_ascii().map(char::from).collect(),
    })
}
