//! Schemas and arrays as text, a line a node.

use std::fmt::Write;

use arrow_device_abi::{ArrayView, SchemaView, ViewError};

/// The tree of a schema, and beside it what the array has: lengths, and how many buffers.
///
/// Recursive, so for trees of sensible depth.
pub fn tree(schema: SchemaView<'_>, array: Option<ArrayView<'_>>) -> Result<String, ViewError> {
    let mut text = String::new();
    node(&mut text, 0, "", schema, array)?;
    Ok(text)
}

fn node(
    text: &mut String,
    depth: usize,
    role: &str,
    schema: SchemaView<'_>,
    array: Option<ArrayView<'_>>,
) -> Result<(), ViewError> {
    // Writing to a `String` cannot fail.
    let _ = write!(text, "{:1$}{role}{2}", "", 2 * depth, schema.format()?);
    if let Some(name) = schema.name()?.filter(|name| !name.is_empty()) {
        let _ = write!(text, " {name:?}");
    }
    if let Some(array) = array {
        let _ = write!(text, ": {} rows", array.length());
        if array.offset() > 0 {
            let _ = write!(text, " after {}", array.offset());
        }
        match array.null_count() {
            Some(0) => {}
            Some(nulls) => {
                let _ = write!(text, ", {nulls} null");
            }
            None => text.push_str(", nulls not counted"),
        }
        let _ = write!(text, ", {} buffers", array.buffers().len());
    }
    text.push('\n');
    for (index, child) in schema.children().enumerate() {
        node(text, depth + 1, "", child?, array.map(|array| array.child(index)).transpose()?)?;
    }
    if let Some(dictionary) = schema.dictionary()? {
        let values = array.map(|array| array.dictionary()).transpose()?.flatten();
        node(text, depth + 1, "dictionary ", dictionary, values)?;
    }
    Ok(())
}
