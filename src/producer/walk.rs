//! Walking a described tree depth first, without recursion.

use alloc::vec::Vec;
use core::mem::{MaybeUninit, replace};

use super::ExportErrorKind;

/// A node of a described tree.
pub(super) trait Node: Copy {
    fn n_children(self) -> usize;
    fn has_dictionary(self) -> bool;
    fn child(self, index: usize) -> Result<Self, ExportErrorKind>;
    fn dictionary(self) -> Result<Option<Self>, ExportErrorKind>;
}

/// The descriptions that users write borrow their children and dictionary.
macro_rules! described {
    ($name:ident) => {
        impl $crate::producer::walk::Node for &$name<'_> {
            fn n_children(self) -> usize {
                self.children.len()
            }

            fn has_dictionary(self) -> bool {
                self.dictionary.is_some()
            }

            fn child(self, index: usize) -> Result<Self, $crate::producer::ExportErrorKind> {
                self.children
                    .get(index)
                    .ok_or($crate::producer::ExportErrorKind::Children { found: self.children.len() })
            }

            fn dictionary(self) -> Result<Option<Self>, $crate::producer::ExportErrorKind> {
                Ok(self.dictionary)
            }
        }
    };
}
pub(super) use described;

/// How a node hangs on its parent.
#[derive(Clone, Copy)]
pub(super) enum Link {
    Child(usize),
    Dictionary,
}

/// What is done with each node of a walk.
pub(super) trait Visit<N> {
    /// What `enter` remembers of a node, for its children and for `leave`.
    type Mark: Copy;

    /// Before the node's children and dictionary, in this order, are entered.
    fn enter(&mut self, node: N, parent: Option<(Self::Mark, Link)>) -> Result<Self::Mark, ExportErrorKind>;
    /// After they were all left.
    fn leave(&mut self, mark: Self::Mark);
}

/// Visits `root` and everything below it.
pub(super) fn walk<N: Node, V: Visit<N>>(root: N, visit: &mut V) -> Result<(), ExportErrorKind> {
    let mut parents = Stack::new();
    let mut top = Frame { node: root, mark: visit.enter(root, None)?, next: 0 };
    'frame: loop {
        let n_children = top.node.n_children();
        // Leaves, which most nodes are, do not touch the stack.
        while let Some((node, link)) = below(top.node, n_children, top.next)? {
            top.next = top.next.wrapping_add(1);
            let mark = visit.enter(node, Some((top.mark, link)))?;
            if node.n_children() == 0 && !node.has_dictionary() {
                visit.leave(mark);
            } else {
                parents.push(replace(&mut top, Frame { node, mark, next: 0 }))?;
                continue 'frame;
            }
        }
        visit.leave(top.mark);
        match parents.pop() {
            Some(parent) => top = parent,
            None => return Ok(()),
        }
    }
}

/// What hangs on `node` at `next`: its children, then its dictionary.
fn below<N: Node>(node: N, n_children: usize, next: usize) -> Result<Option<(N, Link)>, ExportErrorKind> {
    if next < n_children {
        return node.child(next).map(|child| Some((child, Link::Child(next))));
    }
    if next > n_children {
        return Ok(None);
    }
    node.dictionary().map(|dictionary| dictionary.map(|dictionary| (dictionary, Link::Dictionary)))
}

#[derive(Clone, Copy)]
struct Frame<N, M> {
    node: N,
    mark: M,
    /// Index of the next child; the number of children stands for the dictionary, more for the end.
    next: usize,
}

/// How deep a tree may be before walking it takes memory of its own.
const INLINE: usize = 16;

/// A stack that allocates only for deep trees, so that an export is one allocation.
struct Stack<F> {
    inline: [MaybeUninit<F>; INLINE],
    len: usize,
    deeper: Vec<F>,
}

impl<F: Copy> Stack<F> {
    const fn new() -> Self {
        Self { inline: [const { MaybeUninit::uninit() }; INLINE], len: 0, deeper: Vec::new() }
    }

    fn push(&mut self, frame: F) -> Result<(), ExportErrorKind> {
        if let Some(place) = self.inline.get_mut(self.len) {
            place.write(frame);
            self.len = self.len.wrapping_add(1);
        } else {
            self.deeper.try_reserve(1).map_err(|_| ExportErrorKind::OutOfMemory)?;
            self.deeper.push(frame);
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<F> {
        if let Some(frame) = self.deeper.pop() {
            return Some(frame);
        }
        self.len = self.len.checked_sub(1)?;
        // SAFETY: `push` wrote everything below the old length.
        self.inline.get(self.len).map(|frame| unsafe { frame.assume_init() })
    }
}
