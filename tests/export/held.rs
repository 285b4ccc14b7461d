//! What C does to arrays: moving and releasing by their bytes.

use arrow_device_abi::ArrayView;
use arrow_device_abi::raw::ArrowArray;

use super::Tree;

/// A node that a consumer holds, at an address of its own, and what has to be read there.
#[derive(Debug)]
pub struct Held<'a> {
    pub tree: &'a Tree,
    pub array: Box<ArrowArray>,
}

// SAFETY: a tree's nodes can be used and released on any thread.
unsafe impl Send for Held<'_> {}

impl<'a> Held<'a> {
    pub fn new(tree: &'a Tree, array: ArrowArray) -> Self {
        Self { tree, array: Box::new(array) }
    }

    /// Moves the array at `src` out: copies its bytes and sets the source's `release` to null (B6).
    ///
    /// # Safety
    ///
    /// - `src` points to a live array that reads as `tree`, and nobody else uses it.
    pub unsafe fn move_out(tree: &'a Tree, src: *mut ArrowArray) -> Self {
        // SAFETY: as the caller promises.
        let held = Self::new(tree, unsafe { src.read() });
        // SAFETY: as the caller promises.
        unsafe { (*src).release = None };
        held
    }

    pub fn view(&self) -> ArrayView<'_> {
        // SAFETY: a live array.
        unsafe { ArrayView::from_raw(&self.array) }.unwrap()
    }

    /// Asserts that all of it can still be read, but for what was moved out.
    pub fn assert_readable(&self) {
        self.tree.assert_read_by(self.view());
    }

    /// Reads it a last time and calls the release callback, which has to set itself to null (C4).
    pub fn release(mut self) {
        self.assert_readable();
        let array: *mut ArrowArray = &raw mut *self.array;
        // SAFETY: a live array that nobody else has; no reference to it is held during the call.
        unsafe {
            let release = (*array).release.unwrap();
            release(array);
            assert!((*array).release.is_none());
        }
    }
}

/// The children of `array` and its dictionary, and where they are.
pub fn below<'a>(tree: &'a Tree, array: &ArrowArray) -> Vec<(&'a Tree, *mut ArrowArray)> {
    assert_eq!(array.n_children, tree.children.len() as i64);
    // SAFETY: a live array has as many children as it says.
    let place = |index| unsafe { *array.children.add(index) };
    let children = tree.children.iter().enumerate().map(|(index, child)| (child, place(index)));
    children.chain(tree.dictionary.as_deref().map(|dictionary| (dictionary, array.dictionary))).collect()
}

/// All nodes below `array`, depth first, and where they are.
pub fn descendants<'a>(tree: &'a Tree, array: &ArrowArray) -> Vec<(&'a Tree, *mut ArrowArray)> {
    let mut all = Vec::new();
    for (tree, node) in below(tree, array) {
        all.push((tree, node));
        // SAFETY: a node of a live tree; one that was moved out still has its numbers and pointers.
        all.extend(descendants(tree, unsafe { &*node }));
    }
    all
}
