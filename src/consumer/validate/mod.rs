//! Checking a struct against its schema: its structure on any device, and its contents where the host can read them.

mod contents;
mod error;
mod node;
mod schema;
mod structure;
mod views;

pub use error::{Fault, Invalid};

use node::Pair;
pub(crate) use node::path;
use schema::CheckSchema;
pub(crate) use schema::type_of;
use structure::Check;

use super::ReadyDeviceArray;
use crate::owned::{OwnedArray, OwnedDeviceArray, OwnedSchema};
use crate::raw::ArrowArray;
use crate::view::{ArrayView, SchemaView};
use crate::walk::walk;

/// How large a tree may be before it is refused: what a hostile one can cost.
///
/// A tree that points to itself, or that shares its nodes, runs into one of these. Neither grows the machine's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many nodes there may be from the root to any other, both included. 64 by default, as in Arrow C++.
    pub depth: usize,
    /// How many nodes there may be, dictionaries included. 1,048,576 by default.
    pub nodes: usize,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self { depth: 64, nodes: 1 << 20 };

    /// These with another depth.
    #[must_use]
    pub const fn with_depth(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// These with another number of nodes.
    #[must_use]
    pub const fn with_nodes(self, nodes: usize) -> Self {
        Self { nodes, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl SchemaView<'_> {
    /// Checks a schema by itself: formats that are known, with as many children as they have, of the types that a map
    /// and a run-end encoded type ask for; dictionaries under integers only; names in UTF-8, which may be missing;
    /// metadata that can be walked to its end.
    ///
    /// What it has to believe: that texts end in NUL, that metadata is as long as the numbers in it say, and that
    /// pointers point to what they should. It allocates only for an error, or for a tree deeper than 16 nodes.
    ///
    /// # Errors
    ///
    /// [`Invalid`]: the first fault, in depth-first order.
    pub fn validate(&self, limits: &Limits) -> Result<(), Invalid> {
        walk(node::Field(*self), &mut CheckSchema::new(*self, limits))
    }
}

impl OwnedSchema {
    /// As [`SchemaView::validate`].
    ///
    /// # Errors
    ///
    /// As there; also if there is nothing to view.
    pub fn validate(&self, limits: &Limits) -> Result<(), Invalid> {
        self.view().map_err(|error| Invalid::at_root(Fault::Schema(error), None))?.validate(limits)
    }
}

/// What is checked of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    Structure,
    /// What the buffers hold too, which are in host memory and written.
    Contents,
}

/// # Safety
///
/// - If `raw` is live, it obeys the C Data Interface as far as its pointers are concerned, and nobody changes or
///   releases any of it during the call.
/// - For [`Depth::Contents`] its buffers are in memory that the host can read, and nothing writes to them any more.
pub(crate) unsafe fn check(
    raw: &ArrowArray,
    schema: SchemaView<'_>,
    limits: &Limits,
    depth: Depth,
) -> Result<(), Invalid> {
    // SAFETY: as the caller promises.
    let array = unsafe { ArrayView::from_raw(raw) }
        .map_err(|error| Invalid::at_root(Fault::Array(error), Some(schema)))?;
    let pair = Pair { schema, array };
    // SAFETY: no buffer is read for the structure.
    walk(pair, &mut unsafe { Check::new(pair, limits, Depth::Structure) })?;
    if depth == Depth::Contents {
        // Of a node whose children are in order: its contents are compared with theirs.
        // SAFETY: as the caller promises.
        walk(pair, &mut unsafe { Check::new(pair, limits, depth) })?;
    }
    Ok(())
}

/// What checking can and cannot do.
///
/// Whoever takes a struct promises that it obeys the interface. These methods check of that promise what the structs
/// themselves show, so that code which was honest but wrong is found out:
/// - the structure against the schema: counts of buffers, children and dictionaries, null pointers only where B7
///   allows them, lengths, offsets and null counts that can be true, children as long as their parents need them;
/// - the contents, if asked to.
///
/// They have to believe, as C does, what nobody can check from inside the process: that a pointer which is not null
/// points to a live struct, or to as many bytes as length, offset and type ask for. Of the bytes of strings and binary
/// values only the last offset says how many there are, so that is believed too.
///
/// No buffer is looked at for the structure, so it can be checked before synchronising, and on any device (D1).
/// Nothing is allocated but for an error, or for a tree deeper than 16 nodes.
impl OwnedArray {
    /// Checks the structure against `schema`, which [is itself](SchemaView::validate) taken to be valid: of it only
    /// the types are checked again, not names and metadata.
    ///
    /// # Errors
    ///
    /// [`Invalid`]: the first fault, in depth-first order.
    pub fn validate(&self, schema: SchemaView<'_>, limits: &Limits) -> Result<(), Invalid> {
        // SAFETY: `take` was promised a struct that obeys the interface; changing or releasing it needs `self`
        // unborrowed.
        unsafe { check(self.as_raw(), schema, limits, Depth::Structure) }
    }

    /// Checks structure and contents against `schema`: offsets that ascend within their data, text that is UTF-8,
    /// views, union ids and offsets, run ends, dictionary indices that are in range, null counts that are those of the
    /// bitmap. What nulls hide is not looked at where the format leaves it open. Buffers may stand at any address (C27).
    ///
    /// Not checked is what any reader survives: decimals of more digits than their type, times beyond a day.
    ///
    /// # Errors
    ///
    /// [`Invalid`]: the first fault of the structure, else of the contents, in depth-first order.
    ///
    /// # Safety
    ///
    /// - `schema` is the array's own (D15), the one that its producer gave for it: every buffer that is not null has as
    ///   many bytes as its types, lengths and offsets ask for, which nobody can see of a pointer.
    pub unsafe fn validate_contents(&self, schema: SchemaView<'_>, limits: &Limits) -> Result<(), Invalid> {
        // SAFETY: as in `validate`; the buffers of an array of the C Data Interface are in host memory and written, and
        // are those of the schema's types, as the caller promises.
        unsafe { check(self.as_raw(), schema, limits, Depth::Contents) }
    }
}

impl OwnedDeviceArray {
    /// Checks the structure, as [`OwnedArray::validate`]: on any device, and before its event has fired.
    ///
    /// # Errors
    ///
    /// [`Invalid`]: the first fault, in depth-first order.
    pub fn validate(&self, schema: SchemaView<'_>, limits: &Limits) -> Result<(), Invalid> {
        // SAFETY: `take` was promised a struct that obeys the interface; changing or releasing it needs `self`
        // unborrowed.
        unsafe { check(&self.as_raw().array, schema, limits, Depth::Structure) }
    }
}

impl ReadyDeviceArray {
    /// Checks structure and contents, as [`OwnedArray::validate_contents`].
    ///
    /// # Errors
    ///
    /// As there; [`Fault::NotHostReady`] if the host cannot read the buffers, or has not waited for them.
    ///
    /// # Safety
    ///
    /// - As for [`OwnedArray::validate_contents`].
    pub unsafe fn validate_contents(&self, schema: SchemaView<'_>, limits: &Limits) -> Result<(), Invalid> {
        if !self.is_host_ready() {
            return Err(Invalid::at_root(Fault::NotHostReady { device: self.device() }, Some(schema)));
        }
        // SAFETY: as in `OwnedDeviceArray::validate`; that it is host-ready says the rest.
        unsafe { check(self.raw(), schema, limits, Depth::Contents) }
    }
}
