//! Walking a tree depth first, without recursion: one that is described, and those of foreign structs.

use alloc::vec::Vec;
use core::mem::{MaybeUninit, replace};

/// A node of a tree.
pub(crate) trait Node: Copy {
    /// Why a node cannot be reached.
    type Error;

    /// The error of a walk whose own memory could not be allocated.
    fn out_of_memory() -> Self::Error;
    fn n_children(self) -> usize;
    fn has_dictionary(self) -> bool;
    fn child(self, index: usize) -> Result<Self, Self::Error>;
    fn dictionary(self) -> Result<Option<Self>, Self::Error>;
}

/// How a node hangs on its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Child(usize),
    Dictionary,
}

/// What is done with each node of a walk.
pub(crate) trait Visit<N: Node> {
    /// What `enter` remembers of a node, for its children and for `leave`.
    type Mark: Copy;

    /// Before the node's children and dictionary, in this order, are entered.
    fn enter(&mut self, node: N, parent: Option<(Self::Mark, Link)>) -> Result<Self::Mark, N::Error>;

    /// After they were all left.
    fn leave(&mut self, _: Self::Mark) {}

    /// The error with which the walk ends, given the way from the root to the node where it arose: each node with the
    /// link that is taken from it.
    fn failed(&self, error: N::Error, _way: impl Iterator<Item = (N, Link)>) -> N::Error {
        error
    }
}

/// Visits `root` and everything below it.
pub(crate) fn walk<N: Node, V: Visit<N>>(root: N, visit: &mut V) -> Result<(), N::Error> {
    let mut parents = Stack::new();
    let mut top = match visit.enter(root, None) {
        Ok(mark) => Frame { node: root, mark, next: 0 },
        Err(error) => return Err(visit.failed(error, core::iter::empty())),
    };
    descend(&mut parents, &mut top, visit).map_err(|error| {
        // A parent on the stack is past the link that was taken from it.
        let way = parents.iter().map(|frame| frame.step(frame.next.wrapping_sub(1)));
        visit.failed(error, way.chain([top.step(top.next)]))
    })
}

#[inline]
fn descend<N: Node, V: Visit<N>>(
    parents: &mut Stack<Frame<N, V::Mark>>,
    top: &mut Frame<N, V::Mark>,
    visit: &mut V,
) -> Result<(), N::Error> {
    'frame: loop {
        let n_children = top.node.n_children();
        // Leaves, which most nodes are, do not touch the stack.
        while let Some((node, link)) = below(top.node, n_children, top.next)? {
            let mark = visit.enter(node, Some((top.mark, link)))?;
            top.next = top.next.wrapping_add(1);
            if node.n_children() == 0 && !node.has_dictionary() {
                visit.leave(mark);
            } else {
                let parent = replace(top, Frame { node, mark, next: 0 });
                parents.push(parent).ok_or_else(N::out_of_memory)?;
                continue 'frame;
            }
        }
        visit.leave(top.mark);
        match parents.pop() {
            Some(parent) => *top = parent,
            None => return Ok(()),
        }
    }
}

/// What hangs on `node` at `next`: its children, then its dictionary.
#[inline]
fn below<N: Node>(node: N, n_children: usize, next: usize) -> Result<Option<(N, Link)>, N::Error> {
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

impl<N: Node, M> Frame<N, M> {
    /// The node with the link that stands at `next`.
    fn step(&self, next: usize) -> (N, Link) {
        let link = if next < self.node.n_children() { Link::Child(next) } else { Link::Dictionary };
        (self.node, link)
    }
}

/// How deep a tree may be before walking it takes memory of its own.
const INLINE: usize = 16;

/// A stack that allocates only for deep trees, so that an export is one allocation and a check none.
struct Stack<F> {
    inline: [MaybeUninit<F>; INLINE],
    len: usize,
    deeper: Vec<F>,
}

impl<F: Copy> Stack<F> {
    const fn new() -> Self {
        Self { inline: [const { MaybeUninit::uninit() }; INLINE], len: 0, deeper: Vec::new() }
    }

    /// `None` if there is no memory for one more.
    fn push(&mut self, frame: F) -> Option<()> {
        if let Some(place) = self.inline.get_mut(self.len) {
            place.write(frame);
            self.len = self.len.wrapping_add(1);
        } else {
            self.deeper.try_reserve(1).ok()?;
            self.deeper.push(frame);
        }
        Some(())
    }

    fn pop(&mut self) -> Option<F> {
        if let Some(frame) = self.deeper.pop() {
            return Some(frame);
        }
        self.len = self.len.checked_sub(1)?;
        // SAFETY: `push` wrote everything below the old length.
        self.inline.get(self.len).map(|frame| unsafe { frame.assume_init() })
    }

    /// From the bottom to the top.
    fn iter(&self) -> impl Iterator<Item = &F> {
        // SAFETY: `push` wrote everything below the length.
        let inline = self.inline.iter().take(self.len).map(|frame| unsafe { frame.assume_init_ref() });
        inline.chain(&self.deeper)
    }
}
