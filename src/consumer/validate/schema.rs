//! Schemas by themselves.

use alloc::borrow::ToOwned;

use super::node::{Field, path};
use super::{Fault, Invalid, Limits};
use crate::format::Format;
use crate::view::SchemaView;
use crate::walk::{Link, Visit};

/// How large a tree has been so far.
pub(super) struct Budget {
    limits: Limits,
    nodes: usize,
}

impl Budget {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self { limits: *limits, nodes: 0 }
    }

    /// Counts a node, and gives its depth by its parent's.
    pub(super) fn enter(&mut self, parent: Option<usize>) -> Result<usize, Invalid> {
        let depth = parent.map_or(1, |depth| depth.saturating_add(1));
        if depth > self.limits.depth {
            return Err(Fault::TooDeep { limit: self.limits.depth }.into());
        }
        if self.nodes >= self.limits.nodes {
            return Err(Fault::TooManyNodes { limit: self.limits.nodes }.into());
        }
        self.nodes = self.nodes.saturating_add(1);
        Ok(depth)
    }
}

/// The type of a schema's node, if it is one: known, with as many children, and of such types, as it has to have.
#[inline]
pub(crate) fn type_of(schema: SchemaView<'_>) -> Result<Format<'_>, Invalid> {
    let format = parse(schema)?;
    let (found, wanted) = (schema.n_children(), format.children());
    if !wanted.allows(found) {
        return Err(Fault::SchemaChildren { found, wanted }.into());
    }
    match format {
        Format::Map => {
            let entries = schema.child(0).map_err(Fault::Schema)?;
            let is_pair = parse(entries)? == Format::Struct && entries.n_children() == 2;
            wants(is_pair, entries, "a struct of key and value")?;
        }
        Format::RunEndEncoded => {
            let ends = schema.child(0).map_err(Fault::Schema)?;
            let is_end = matches!(parse(ends)?, Format::Int16 | Format::Int32 | Format::Int64);
            wants(is_end && ends.as_raw().dictionary.is_null(), ends, "run ends of type s, i or l")?;
        }
        _ => {}
    }
    if !schema.as_raw().dictionary.is_null() {
        wants(format.is_integer(), schema, "an integer for a dictionary's indices")?;
    }
    Ok(format)
}

#[inline]
fn parse(schema: SchemaView<'_>) -> Result<Format<'_>, Invalid> {
    Format::parse(schema.format().map_err(Fault::Schema)?)
        .map_err(|error| Fault::Format { format: error.format().to_owned(), problem: error.problem() }.into())
}

fn wants(is: bool, schema: SchemaView<'_>, wanted: &'static str) -> Result<(), Invalid> {
    if is {
        return Ok(());
    }
    Err(Fault::Type { found: schema.format().map_err(Fault::Schema)?.to_owned(), wanted }.into())
}

/// Checks every node of a schema.
pub(super) struct CheckSchema<'a> {
    root: SchemaView<'a>,
    budget: Budget,
}

impl<'a> CheckSchema<'a> {
    pub(super) const fn new(root: SchemaView<'a>, limits: &Limits) -> Self {
        Self { root, budget: Budget::new(limits) }
    }
}

impl<'a> Visit<Field<'a>> for CheckSchema<'a> {
    type Mark = usize;

    fn enter(&mut self, field: Field<'a>, parent: Option<(usize, Link)>) -> Result<usize, Invalid> {
        let Field(schema) = field;
        let depth = self.budget.enter(parent.map(|(depth, _)| depth))?;
        type_of(schema)?;
        schema.name().map_err(Fault::Schema)?;
        schema.metadata().map_err(Fault::Schema)?;
        Ok(depth)
    }

    fn failed(&self, error: Invalid, way: impl Iterator<Item = (Field<'a>, Link)>) -> Invalid {
        error.at(path(self.root, way.map(|(Field(schema), link)| (schema, link))))
    }
}
