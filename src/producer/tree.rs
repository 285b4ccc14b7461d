//! One allocation a tree: how arrays and schemas alike are laid out, and how they are released.
//!
//! ```text
//! | Header<K>          | Slot 0 | Slot 1 | … | Slot n-1 | child pointers | buffer pointers or texts |
//! | live, layout, keep | root   | descendants, depth first |
//! ```
//!
//! A node's `private_data` points to its slot. Depth-first order makes a subtree one run of slots, so a release walks
//! its run with a loop, however deep the tree is. A node that was moved out is released in its slot: the walk skips
//! its run, and its own release, wherever and whenever it is, walks that. `live` counts the nodes that are not
//! released; who takes it to zero drops the keep-alive and frees the block.

use alloc::alloc::{Layout, alloc, dealloc};
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

use super::{ExportError, ExportErrorKind};
use crate::owned::Release;
use crate::panics::contain;
use crate::walk::{Link, Node, Visit, walk};

/// A struct that can be a node of a tree.
///
/// # Safety
///
/// - `private_data` gives back what the last `link` set.
pub(super) unsafe trait TreeStruct: Release + 'static {
    fn link(
        &mut self,
        children: *mut *mut Self,
        release: unsafe extern "C" fn(*mut Self),
        private_data: *mut c_void,
    );
    fn set_dictionary(&mut self, dictionary: *mut Self);
    fn private_data(&self) -> *mut c_void;
}

macro_rules! tree_struct {
    ($name:ident) => {
        // SAFETY: both are the field.
        unsafe impl $crate::producer::tree::TreeStruct for $name {
            fn link(
                &mut self,
                children: *mut *mut Self,
                release: unsafe extern "C" fn(*mut Self),
                private_data: *mut core::ffi::c_void,
            ) {
                self.children = children;
                self.release = Some(release);
                self.private_data = private_data;
            }

            fn set_dictionary(&mut self, dictionary: *mut Self) {
                self.dictionary = dictionary;
            }

            fn private_data(&self) -> *mut core::ffi::c_void {
                self.private_data
            }
        }
    };
}
pub(super) use tree_struct;

/// The descriptions that users write borrow their children and dictionary.
macro_rules! described {
    ($name:ident) => {
        impl $crate::walk::Node for &$name<'_> {
            type Error = $crate::producer::ExportErrorKind;

            fn out_of_memory() -> Self::Error {
                $crate::producer::ExportErrorKind::OutOfMemory
            }

            fn n_children(self) -> usize {
                self.children.len()
            }

            fn has_dictionary(self) -> bool {
                self.dictionary.is_some()
            }

            fn child(self, index: usize) -> Result<Self, Self::Error> {
                self.children
                    .get(index)
                    .ok_or($crate::producer::ExportErrorKind::Children { found: self.children.len() })
            }

            fn dictionary(self) -> Result<Option<Self>, Self::Error> {
                Ok(self.dictionary)
            }
        }
    };
}
pub(super) use described;

/// A description of a node that can be written into a block.
pub(super) trait Export: Node<Error = ExportErrorKind> {
    type Struct: TreeStruct;

    /// Checks the node by itself, and says how many bytes of the block's last part it takes.
    ///
    /// If that part holds pointers, every share is a multiple of a pointer's size.
    fn measure(self) -> Result<usize, ExportErrorKind>;

    /// Writes the node's share of the block's last part, and its struct without links; gives the end of the share.
    ///
    /// # Safety
    ///
    /// - `data` is valid for writes of as many bytes as `measure` says, and aligned for a pointer if all shares are
    ///   multiples of that.
    /// - `node` is valid for writes and aligned.
    unsafe fn write(self, node: *mut Self::Struct, data: *mut u8) -> *mut u8;
}

#[repr(C)]
struct Header<K> {
    /// How many nodes are not released yet.
    live: AtomicUsize,
    /// The whole block's.
    layout: Layout,
    keep: K,
}

#[repr(C)]
struct Slot<S> {
    /// First, so that a pointer to the slot is one to the node.
    node: S,
    /// How many slots the subtree has, this one included.
    run: usize,
    /// Which slot this is: the way back to the header.
    index: usize,
}

/// Where the keep-alive stands.
const fn keep_of<K>(header: *mut Header<K>) -> *mut K {
    header.wrapping_byte_add(offset_of!(Header<K>, keep)).cast()
}

/// Bytes from the header to slot 0: what [`Layout::extend`] says too.
const fn slots_offset<S, K>() -> usize {
    size_of::<Header<K>>().next_multiple_of(align_of::<Slot<S>>())
}

/// Makes the C tree for `root`. `keep` is dropped when the last node is released, on whatever thread that is.
///
/// Gives the root struct, live, for its owner to release, and where `keep` stands until it is dropped.
pub(super) fn build<N: Export, K: Send + 'static>(
    root: N,
    keep: K,
) -> Result<(N::Struct, *mut K), ExportError<K>> {
    let block = match Block::<N::Struct>::new::<N, K>(root) {
        Ok(block) => block,
        Err(kind) => return Err(ExportError { keep, kind }),
    };
    let header = block.base.cast::<Header<K>>();
    let live = AtomicUsize::new(block.nodes);
    // SAFETY: the block starts with room for the header, aligned by the block's layout.
    unsafe { header.write(Header { live, layout: block.layout, keep }) };
    // SAFETY: slot 0 is the root's and was written. Its copy is the root from here on; nothing looks at the original
    // again, because walks start behind the slot of the node that is released.
    let root = unsafe { block.slots.cast::<N::Struct>().read() };
    core::mem::forget(block);
    Ok((root, keep_of(header.as_ptr())))
}

/// A block without a header: freed when dropped.
struct Block<S> {
    base: NonNull<u8>,
    layout: Layout,
    slots: *mut Slot<S>,
    nodes: usize,
}

impl<S: TreeStruct> Block<S> {
    /// Allocates the block and writes everything but the header.
    fn new<N: Export<Struct = S>, K: Send + 'static>(root: N) -> Result<Self, ExportErrorKind> {
        let mut sizes = Measure::default();
        walk(root, &mut sizes)?;

        let too_large = |_| ExportErrorKind::TooLarge;
        let slots = Layout::array::<Slot<S>>(sizes.nodes).map_err(too_large)?;
        let links = Layout::array::<*mut S>(sizes.links).map_err(too_large)?;
        let data = Layout::array::<u8>(sizes.data).map_err(too_large)?;
        let (layout, slots_at) = Layout::new::<Header<K>>().extend(slots).map_err(too_large)?;
        let (layout, links_at) = layout.extend(links).map_err(too_large)?;
        let (layout, data_at) = layout.extend(data).map_err(too_large)?;
        debug_assert!(slots_at == slots_offset::<S, K>(), "a release finds the header by this offset");

        // SAFETY: there is at least a header, so the size is not zero.
        let base = NonNull::new(unsafe { alloc(layout) }).ok_or(ExportErrorKind::OutOfMemory)?;
        let part = |at| base.as_ptr().wrapping_add(at);
        let block = Self { base, layout, slots: part(slots_at).cast(), nodes: sizes.nodes };
        let mut fill = Fill {
            slots: block.slots,
            entered: 0,
            links: part(links_at).cast(),
            data: part(data_at),
            release: release::<S, K>,
        };
        walk(root, &mut fill)?;
        Ok(block)
    }
}

impl<S> Drop for Block<S> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nothing that was written into it needs dropping.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// First walk: how much room the tree needs.
#[derive(Default)]
struct Measure {
    nodes: usize,
    links: usize,
    data: usize,
}

impl<N: Export> Visit<N> for Measure {
    type Mark = ();

    fn enter(&mut self, node: N, _: Option<((), Link)>) -> Result<(), ExportErrorKind> {
        // No layout is as large as a sum that does not fit, so that is found when the layout is made.
        self.nodes = self.nodes.saturating_add(1);
        self.links = self.links.saturating_add(node.n_children());
        self.data = self.data.saturating_add(node.measure()?);
        Ok(())
    }
}

/// Second walk, over the same tree: writes what the first one measured, in the same order.
struct Fill<S> {
    slots: *mut Slot<S>,
    entered: usize,
    links: *mut *mut S,
    data: *mut u8,
    release: unsafe extern "C" fn(*mut S),
}

/// Where a node and the pointers to its children stand.
struct Placed<S> {
    index: usize,
    slot: *mut Slot<S>,
    links: *mut *mut S,
}

impl<S> Clone for Placed<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Placed<S> {}

impl<N: Export> Visit<N> for Fill<N::Struct> {
    type Mark = Placed<N::Struct>;

    fn enter(&mut self, node: N, parent: Option<(Self::Mark, Link)>) -> Result<Self::Mark, ExportErrorKind> {
        let index = self.entered;
        let slot = self.slots.wrapping_add(index);
        let this: *mut N::Struct = slot.cast();
        // SAFETY: the first walk made room for the shares and slots of all nodes, and these are the next one's.
        self.data = unsafe { node.write(this, self.data) };
        let links = self.links;
        let children = if node.n_children() == 0 { ptr::null_mut() } else { links };
        // SAFETY: `write` has just written the struct.
        unsafe { (*this).link(children, self.release, slot.cast()) };
        // SAFETY: as for the struct, which stands in front of these.
        unsafe { (*slot).run = 1 };
        // SAFETY: as above.
        unsafe { (*slot).index = index };
        if let Some((parent, link)) = parent {
            match link {
                // SAFETY: the first walk made room for as many links as the parent has children.
                Link::Child(child) => unsafe { parent.links.wrapping_add(child).write(this) },
                // SAFETY: the parent's slot was written when it was entered.
                Link::Dictionary => unsafe { (*parent.slot).node.set_dictionary(this) },
            }
        }
        self.links = links.wrapping_add(node.n_children());
        self.entered = index.wrapping_add(1);
        Ok(Placed { index, slot, links })
    }

    fn leave(&mut self, Placed { index, slot, .. }: Self::Mark) {
        // SAFETY: the slot was written when its node was entered; everything entered since is its subtree.
        unsafe { (*slot).run = self.entered.wrapping_sub(index) };
    }
}

/// The release callback of every node.
///
/// # Safety
///
/// - `this` is null, or points to a node that `build::<_, K>` made, in its slot or moved elsewhere, or released.
/// - Nothing else uses the node or its descendants, but for those that were moved out.
unsafe extern "C" fn release<S: TreeStruct, K>(this: *mut S) {
    if this.is_null() {
        return;
    }
    // SAFETY: not null, so it points to a node, which is the caller's alone for this call.
    let node = unsafe { &mut *this };
    if node.is_released() {
        return;
    }
    let slot: *mut Slot<S> = node.private_data().cast();
    // Before anything else: if what follows is cut short, nobody comes back.
    node.mark_released();

    // SAFETY: the node was live, so its block is, and `private_data` is its slot.
    let live = unsafe { live_nodes(slot) };
    // SAFETY: as above.
    let index = unsafe { (*slot).index };
    let header = slot.wrapping_sub(index).wrapping_byte_sub(slots_offset::<S, K>()).cast::<Header<K>>();
    // SAFETY: the header stands this far before its slots; it lives until `live` is zero, and this node is counted.
    let count = unsafe { &(*header).live };
    // If what is live is all ours there is nobody to race with, and no need for the dearer operation. Either acquires:
    // what other threads did before they let go of their nodes happens before the block is freed.
    if count.load(Ordering::Acquire) != live && count.fetch_sub(live, Ordering::AcqRel) != live {
        return;
    }
    // SAFETY: no node is left, so nobody else can reach the block.
    unsafe { free(header) };
}

/// How many nodes of the subtree at `slot` are released with its root: the root, and all that were not moved out or
/// below one that was.
///
/// # Safety
///
/// - `slot` is the slot of a node of a live block, and the nodes of its subtree that were not moved out are not used.
unsafe fn live_nodes<S: TreeStruct>(slot: *mut Slot<S>) -> usize {
    // SAFETY: a slot of a live block.
    let run = unsafe { (*slot).run };
    let mut live = 1_usize;
    let mut at = 1_usize;
    while at < run {
        // SAFETY: the subtree is `run` slots from `slot` on, and this is one of them. Whoever moved its node out left
        // it released and does not touch the slot again.
        let descendant = unsafe { &*slot.wrapping_add(at) };
        if descendant.node.is_released() {
            at = at.wrapping_add(descendant.run);
        } else {
            live = live.wrapping_add(1);
            at = at.wrapping_add(1);
        }
    }
    live
}

/// Drops the keep-alive and frees the block. A panic of the keep-alive's `Drop` ends here (C9).
///
/// # Safety
///
/// - `header` is that of a block with this `K`, and nothing uses the block any more.
unsafe fn free<K>(header: *mut Header<K>) {
    // SAFETY: the block is live.
    let layout = unsafe { (*header).layout };
    contain(|| {
        // SAFETY: written by `build` and dropped only here.
        unsafe { keep_of(header).drop_in_place() }
    })
    .ok();
    // SAFETY: the header is at the start of the block, which was allocated with this layout.
    unsafe { dealloc(header.cast(), layout) };
}
