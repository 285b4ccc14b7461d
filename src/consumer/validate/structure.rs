//! Arrays against their schema: what the structs alone show.

use core::ptr;

use super::node::{Pair, path};
use super::schema::{Budget, type_of};
use super::{Depth, Fault, Invalid, Limits, contents};
use crate::format::{BufferKind, Format};
use crate::view::{ArrayView, SchemaView};
use crate::walk::{Link, Visit};

/// Checks every node of an array.
pub(super) struct Check<'a> {
    root: SchemaView<'a>,
    budget: Budget,
    depth: Depth,
}

/// What a node asks of its children.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    depth: usize,
    rule: Rule,
}

#[derive(Clone, Copy)]
enum Rule {
    None,
    /// Each is this long.
    Length(usize),
    /// The one child is a struct without nulls, whose first child has none either.
    Map,
    /// Entries of a map: each is this long, and the first has no nulls.
    Entries(usize),
    /// Run ends, which have no nulls and reach this far, and as many values.
    Runs {
        end: usize,
        runs: usize,
    },
}

/// What is asked of one node.
#[derive(Clone, Copy, Default)]
struct Place {
    least_length: usize,
    no_nulls: bool,
    are_entries: bool,
    run_ends: Option<usize>,
}

impl Rule {
    fn place(self, link: Link) -> Place {
        let Link::Child(index) = link else {
            return Place::default();
        };
        let first = index == 0;
        match self {
            Self::None => Place::default(),
            Self::Length(least_length) => Place { least_length, ..Place::default() },
            Self::Map => Place { no_nulls: true, are_entries: true, ..Place::default() },
            Self::Entries(least_length) => Place { least_length, no_nulls: first, ..Place::default() },
            Self::Runs { end, .. } if first => Place {
                least_length: usize::from(end > 0),
                no_nulls: true,
                run_ends: Some(end),
                ..Place::default()
            },
            Self::Runs { runs, .. } => Place { least_length: runs, ..Place::default() },
        }
    }
}

impl<'a> Check<'a> {
    /// # Safety
    ///
    /// - For [`Depth::Contents`] the buffers of the array are in memory that the host can read, have the bytes that
    ///   type, offset and length ask for unless they are null, and nothing writes to them any more.
    pub(super) unsafe fn new(root: Pair<'a>, limits: &Limits, depth: Depth) -> Self {
        Self { root: root.schema, budget: Budget::new(limits), depth }
    }

    fn node(&self, Pair { schema, array }: Pair<'a>, place: Place) -> Result<Rule, Invalid> {
        let format = type_of(schema)?;
        let (found, wanted) = (array.n_children(), schema.n_children());
        if found != wanted {
            return Err(Fault::Children { found, wanted }.into());
        }
        let found = !array.as_raw().dictionary.is_null();
        if found == schema.as_raw().dictionary.is_null() {
            return Err(Fault::Dictionary { found }.into());
        }
        if array.length() < place.least_length {
            return Err(Fault::Length { found: array.length(), wanted: place.least_length }.into());
        }
        let has_bitmap = buffers(array, &format)?;
        let no_nulls = place.no_nulls || !has_bitmap && format != Format::Null;
        match array.null_count() {
            Some(found @ 1..) if no_nulls => return Err(Fault::NullCount { found, wanted: 0 }.into()),
            _ => {}
        }
        let rule = rule(array, &format, place)?;
        if self.depth == Depth::Contents {
            // SAFETY: as `new` was promised; `buffers` has seen that none is missing or larger than memory.
            unsafe { contents::check(schema, array, &format, no_nulls, place.run_ends) }?;
        }
        Ok(rule)
    }
}

/// Offset and length together, which `ArrayView` has seen not to overflow.
pub(super) const fn end(array: ArrayView<'_>) -> usize {
    array.offset().saturating_add(array.length())
}

/// Checks the buffers, and says whether the first is a validity bitmap.
fn buffers(array: ArrayView<'_>, format: &Format<'_>) -> Result<bool, Invalid> {
    let (buffers, pointers) = (format.buffers(), array.buffers());
    let kinds = buffers.kinds();
    if !buffers.allows(pointers.len()) {
        let wanted = kinds.len().saturating_add(usize::from(buffers.is_variadic()));
        return Err(Fault::Buffers { found: pointers.len(), wanted }.into());
    }
    for (buffer, (kind, pointer)) in kinds.iter().zip(pointers).enumerate() {
        // Only the last offset says how many bytes there are.
        if *kind == BufferKind::Data {
            continue;
        }
        let wanted = kind.bytes(end(array)).ok_or(Fault::TooLarge { buffer })?;
        // A bitmap may be missing: whether it may be in this array, the view knows. Without elements nothing is read
        // of any buffer, so each may be.
        let may_be_null = *kind == BufferKind::Validity || wanted == 0 || array.length() == 0;
        if pointer.is_null() && !may_be_null {
            return Err(Fault::NullBuffer { buffer, wanted }.into());
        }
    }
    if buffers.is_variadic() {
        let sizes = pointers.len().saturating_sub(1);
        let wanted = sizes.saturating_sub(kinds.len()).saturating_mul(size_of::<i64>());
        if pointers.last() == Some(&ptr::null()) && wanted > 0 && array.length() > 0 {
            return Err(Fault::NullBuffer { buffer: sizes, wanted }.into());
        }
    }
    Ok(kinds.first() == Some(&BufferKind::Validity))
}

/// What `array` asks of its children.
fn rule(array: ArrayView<'_>, format: &Format<'_>, place: Place) -> Result<Rule, Invalid> {
    Ok(match *format {
        // C26: a struct's offset is one into its children.
        Format::Struct if place.are_entries => Rule::Entries(end(array)),
        Format::Struct | Format::SparseUnion(_) => Rule::Length(end(array)),
        Format::FixedSizeList(size) => {
            // `usize` is 32 bits at least wherever this crate compiles. No array is as long as what does not fit.
            Rule::Length(end(array).saturating_mul(size as usize))
        }
        Format::Map => Rule::Map,
        Format::RunEndEncoded => {
            // Without elements no run is looked for.
            let end = if array.length() == 0 { 0 } else { end(array) };
            Rule::Runs { end, runs: array.child(0).map_err(Fault::Array)?.length() }
        }
        _ => Rule::None,
    })
}

impl<'a> Visit<Pair<'a>> for Check<'a> {
    type Mark = Mark;

    fn enter(&mut self, pair: Pair<'a>, parent: Option<(Mark, Link)>) -> Result<Mark, Invalid> {
        let depth = self.budget.enter(parent.map(|(mark, _)| mark.depth))?;
        let place = parent.map_or(Place::default(), |(mark, link)| mark.rule.place(link));
        let rule = self.node(pair, place)?;
        Ok(Mark { depth, rule })
    }

    fn failed(&self, error: Invalid, way: impl Iterator<Item = (Pair<'a>, Link)>) -> Invalid {
        error.at(path(self.root, way.map(|(pair, link)| (pair.schema, link))))
    }
}
