//! Descriptions that are as deep as wanted, made without recursion.

use std::cell::OnceCell;

use arrow_device_abi::{ArrayNode, SchemaNode};

macro_rules! chain {
    ($(#[$doc:meta])* $name:ident, $node:ident) => {
        $(#[$doc])*
        pub fn $name<R>(
            levels: usize,
            above: for<'a> fn(&'a $node<'a>) -> $node<'a>,
            f: impl FnOnce(&$node<'_>) -> R,
        ) -> R {
            let cells: Vec<OnceCell<$node<'_>>> = (0..levels).map(|_| OnceCell::new()).collect();
            let mut top = cells[0].get_or_init(Default::default);
            for cell in &cells[1..] {
                top = cell.get_or_init(|| above(top));
            }
            f(top)
        }
    };
}
chain! {
    /// Calls `f` with a chain of arrays, each made by `above` from the one below it, and the last the default.
    with_array_chain, ArrayNode
}
chain! {
    /// Calls `f` with a chain of schemas, each made by `above` from the one below it, and the last the default.
    with_schema_chain, SchemaNode
}
