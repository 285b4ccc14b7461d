//! Whether an array's description is one of a schema's type.

use super::{ArrayNode, ExportErrorKind};
use crate::format::Format;
use crate::view::SchemaView;
use crate::walk::{Link, Node, Visit, walk};

impl ArrayNode<'_> {
    /// Checks that every node has as many buffers and children as its type in `schema`, and a dictionary where that
    /// has one. A type that [`Format`] does not know is left unchecked, but for children and dictionary.
    ///
    /// It is not part of [`export`](Self::export), which has no schema and should cost nothing where the two are
    /// known to go together.
    ///
    /// # Errors
    ///
    /// [`ExportErrorKind::Buffers`], [`ExportErrorKind::Children`]; [`ExportErrorKind::View`] or
    /// [`ExportErrorKind::Format`] if the schema is itself malformed.
    pub fn fits(&self, schema: SchemaView<'_>) -> Result<(), ExportErrorKind> {
        walk(Pair { node: self, schema }, &mut Fits)
    }
}

#[derive(Clone, Copy)]
struct Pair<'a> {
    node: &'a ArrayNode<'a>,
    schema: SchemaView<'a>,
}

impl Node for Pair<'_> {
    type Error = ExportErrorKind;

    fn out_of_memory() -> ExportErrorKind {
        ExportErrorKind::OutOfMemory
    }

    fn n_children(self) -> usize {
        self.node.n_children()
    }

    fn has_dictionary(self) -> bool {
        self.node.has_dictionary()
    }

    fn child(self, index: usize) -> Result<Self, ExportErrorKind> {
        Ok(Self { node: self.node.child(index)?, schema: Node::child(self.schema, index)? })
    }

    fn dictionary(self) -> Result<Option<Self>, ExportErrorKind> {
        let pair = self.node.dictionary()?.zip(Node::dictionary(self.schema)?);
        Ok(pair.map(|(node, schema)| Self { node, schema }))
    }
}

struct Fits;

impl<'a> Visit<Pair<'a>> for Fits {
    type Mark = ();

    fn enter(&mut self, pair: Pair<'a>, _: Option<((), Link)>) -> Result<(), ExportErrorKind> {
        let Pair { node, schema } = pair;
        let children = ExportErrorKind::Children { found: node.children.len() };
        if node.children.len() != schema.n_children() || node.has_dictionary() != schema.has_dictionary() {
            return Err(children);
        }
        match Format::parse(schema.format().map_err(ExportErrorKind::View)?) {
            Ok(format) if !format.children().allows(node.children.len()) => Err(children),
            Ok(format) if !format.buffers().allows(node.buffers.len()) => {
                Err(ExportErrorKind::Buffers { found: node.buffers.len() })
            }
            Err(error) if !error.is_unknown() => Err(ExportErrorKind::Format(error.problem())),
            _ => Ok(()),
        }
    }
}
