//! What can be done to a valid array and its schema: some changes stay within the format, others break it.

mod schemas;
mod structs;
mod values;

use arrow_device_abi::raw::{ArrowArray, ArrowSchema};
use arrow_device_abi::{OwnedArray, OwnedSchema};

use super::Rng;
use crate::common::Counter;
use crate::export::{Tree, descendants};

/// What is broken, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// Nothing: it is as the format allows.
    Nothing,
    Schema,
    /// What the structs of the array show.
    Structure,
    /// What its buffers hold.
    Contents,
}

#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub name: &'static str,
    pub breaks: Breaks,
    apply: Apply,
}

/// What is done to a node, if it can be.
#[derive(Clone, Copy, Debug)]
enum Apply {
    /// Before the array is exported; `None` if it cannot be, and then nothing was done.
    Tree(fn(&mut Tree, &mut Rng) -> Option<()>),
    /// Done to the exported struct if the first function says so.
    Array(fn(&Tree) -> bool, fn(&mut ArrowArray, &Tree)),
    Schema(fn(&ArrowSchema) -> bool, fn(&mut ArrowSchema)),
}

pub fn all() -> Vec<Change> {
    [structs::ALL, values::ALL, schemas::ALL].concat()
}

/// An array that was valid until something was done to it.
#[derive(Debug)]
pub struct Changed {
    /// As it was exported: what was done to its structs is not in it.
    pub tree: Tree,
    pub schema: OwnedSchema,
    pub array: OwnedArray,
}

/// A random array, and the change done to one of its nodes; `None` if there is no node for it.
pub fn changed(rng: &mut Rng, change: Option<Change>) -> Option<Changed> {
    let mut tree = super::array(rng);
    let nodes = tree.count();
    let order = {
        let start = rng.below(nodes);
        (0..nodes).map(move |index| (start + index) % nodes)
    };
    let mut done = change.is_none();
    if let Some(Apply::Tree(apply)) = change.map(|change| change.apply) {
        done = order.clone().any(|index| apply(tree.nth_mut(index), rng).is_some());
    }
    let mut array = tree.export(&Counter::new());
    let mut schema = typed(&tree);
    match change.map(|change| change.apply) {
        Some(Apply::Array(when, then)) => {
            let root = array.as_mut_ptr();
            let mut all = vec![(&tree, root)];
            // SAFETY: a live array, which is this function's alone.
            all.extend(descendants(&tree, unsafe { &*root }));
            if let Some((tree, node)) = order.map(|index| all[index]).find(|(tree, _)| when(tree)) {
                // SAFETY: a node of a live array that nobody else looks at.
                then(unsafe { &mut *node }, tree);
                done = true;
            }
        }
        Some(Apply::Schema(when, then)) => {
            let nodes = schema_nodes(schema.as_mut_ptr());
            // SAFETY: nodes of a live schema that nobody else looks at.
            if let Some(node) = order.map(|index| nodes[index]).find(|node| when(unsafe { &**node })) {
                // SAFETY: as above.
                then(unsafe { &mut *node });
                done = true;
            }
        }
        _ => {}
    }
    done.then_some(Changed { tree, schema, array })
}

/// The schema of the tree. All fields have a name, and entries and keys of maps are not nullable: Arrow C++ insists on
/// both.
pub fn typed(tree: &Tree) -> OwnedSchema {
    let mut schema = tree.schema();
    for node in schema_nodes(schema.as_mut_ptr()) {
        // SAFETY: a node of a live schema that nobody else looks at, and a map has these children.
        unsafe {
            (*node).name = c"field".as_ptr();
            if core::ffi::CStr::from_ptr((*node).format) == c"+m" {
                let entries = *(*node).children;
                (*entries).flags = 0;
                (**(*entries).children).flags = 0;
            }
        }
    }
    schema
}

/// All nodes of a live schema, depth first, dictionaries after children.
fn schema_nodes(root: *mut ArrowSchema) -> Vec<*mut ArrowSchema> {
    let mut all = vec![root];
    // SAFETY: a live schema has as many children as it says.
    unsafe {
        for index in 0..(*root).n_children as usize {
            all.extend(schema_nodes(*(*root).children.add(index)));
        }
        if !(*root).dictionary.is_null() {
            all.extend(schema_nodes((*root).dictionary));
        }
    }
    all
}
