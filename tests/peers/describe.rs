//! Tells what the structs hold, in the grammar of `describe.h`, which tells the same from Arrow C++'s own objects.
//!
//! What is told of the buffers is read from them: the layout table below is a reading of the format specification, not
//! of Arrow's code.

use core::fmt::Write as _;

use arrow_device_abi::{ArrayView, SchemaView};

pub type Error = Box<dyn std::error::Error>;

/// What follows the validity bitmap.
enum Layout {
    /// No buffers at all, not even a bitmap.
    Null,
    /// A bitmap and nothing else.
    OnlyValidity,
    /// Values of so many bits.
    Fixed(usize),
    /// Offsets of so many bytes, and what they count is in a second buffer.
    Bytes(usize),
    /// Offsets of so many bytes, and what they count is in a child.
    List(usize),
    /// Offsets and sizes of so many bytes each.
    ListView(usize),
    /// Views of 16 bytes, data buffers, sizes of these.
    Views,
    /// Type ids, no bitmap.
    SparseUnion,
    /// Type ids and offsets, no bitmap.
    DenseUnion,
}

fn layout(format: &str) -> Result<Layout, Error> {
    let number = |text: &str| text.parse::<usize>();
    Ok(match format {
        "n" | "+r" => Layout::Null,
        "b" => Layout::Fixed(1),
        "c" | "C" => Layout::Fixed(8),
        "s" | "S" | "e" => Layout::Fixed(16),
        "i" | "I" | "f" | "tdD" | "tts" | "ttm" | "tiM" => Layout::Fixed(32),
        "l" | "L" | "g" | "tdm" | "ttu" | "ttn" | "tiD" => Layout::Fixed(64),
        "tin" => Layout::Fixed(128),
        "z" | "u" => Layout::Bytes(4),
        "Z" | "U" => Layout::Bytes(8),
        "vz" | "vu" => Layout::Views,
        "+l" | "+m" => Layout::List(4),
        "+L" => Layout::List(8),
        "+vl" => Layout::ListView(4),
        "+vL" => Layout::ListView(8),
        "+s" => Layout::OnlyValidity,
        _ => match format.split_once(':') {
            Some(("w", width)) => Layout::Fixed(8 * number(width)?),
            Some(("d", parameters)) => {
                Layout::Fixed(parameters.splitn(3, ',').nth(2).map_or(Ok(128), number)?)
            }
            Some(("+w", _)) => Layout::OnlyValidity,
            Some(("+us", _)) => Layout::SparseUnion,
            Some(("+ud", _)) => Layout::DenseUnion,
            Some((timestamp_or_duration, _)) if timestamp_or_duration.starts_with("ts") => Layout::Fixed(64),
            None if format.starts_with("tD") => Layout::Fixed(64),
            _ => return Err(format!("an unknown format: {format}").into()),
        },
    })
}

pub fn schema(text: &mut String, root: SchemaView<'_>) -> Result<(), Error> {
    schema_at(text, 0, root)
}

fn schema_at(text: &mut String, depth: usize, schema: SchemaView<'_>) -> Result<(), Error> {
    let dictionary = schema.dictionary()?;
    write!(
        text,
        "{:indent$}{}|{}|{}|{}|{}|",
        "",
        schema.name()?.unwrap_or_default(),
        schema.format()?,
        schema.flags(),
        schema.n_children(),
        u8::from(dictionary.is_some()),
        indent = 2 * depth,
    )?;
    for (key, value) in schema.metadata()? {
        write!(text, "{}={};", core::str::from_utf8(key)?, core::str::from_utf8(value)?)?;
    }
    text.push('\n');
    for child in schema.children() {
        schema_at(text, depth + 1, child?)?;
    }
    dictionary.map_or(Ok(()), |dictionary| schema_at(text, depth + 1, dictionary))
}

/// # Safety
///
/// - The buffers are in memory that the host can read, as long as the format wants them, and nobody writes to them.
pub unsafe fn array(text: &mut String, schema: SchemaView<'_>, root: ArrayView<'_>) -> Result<(), Error> {
    // SAFETY: passed on.
    unsafe { array_at(text, 0, schema, root) }
}

/// # Safety
///
/// - As for [`array`].
unsafe fn array_at(
    text: &mut String,
    depth: usize,
    schema: SchemaView<'_>,
    array: ArrayView<'_>,
) -> Result<(), Error> {
    let n = array.offset() + array.length();
    let layout = layout(schema.format()?)?;
    // SAFETY: passed on; each place below asks for what the format gives the buffer.
    let bytes = |index, count| unsafe { array.buffer_as::<u8>(index, count) };
    // The value at the end of a buffer of offsets, of which an empty array needs none.
    let last_offset = |index, width: usize| -> Result<usize, Error> {
        if n == 0 {
            return Ok(0);
        }
        let offsets = bytes(index, (n + 1) * width)?;
        Ok(match offsets.last_chunk::<8>() {
            Some(last) if width == 8 => usize::try_from(i64::from_ne_bytes(*last))?,
            _ => usize::try_from(i32::from_ne_bytes(*offsets.last_chunk().ok_or("no offsets")?))?,
        })
    };
    let offsets = |width| if n == 0 { 0 } else { (n + 1) * width };

    // What each buffer must hold, in bytes, after the bitmap; and how many buffers stand behind those.
    let mut wanted = Vec::new();
    let mut sizes = None;
    let mut has_validity = true;
    match layout {
        Layout::Null => has_validity = false,
        Layout::OnlyValidity => {}
        Layout::Fixed(bits) => wanted.push((n * bits).div_ceil(8)),
        Layout::Bytes(width) => wanted.extend([offsets(width), last_offset(1, width)?]),
        Layout::List(width) => wanted.push(offsets(width)),
        Layout::ListView(width) => wanted.extend([n * width; 2]),
        Layout::SparseUnion | Layout::DenseUnion => {
            has_validity = false;
            wanted.push(n);
            if matches!(layout, Layout::DenseUnion) {
                wanted.push(n * 4);
            }
        }
        Layout::Views => {
            let buffers = array.binary_view_buffers()?;
            wanted.push(n * 16);
            for size in bytes(array.buffers().len() - 1, buffers.data.len() * 8)?.chunks_exact(8) {
                wanted.push(usize::try_from(i64::from_ne_bytes(size.try_into()?))?);
            }
            sizes = Some(buffers.data.len());
        }
    }

    let mut told = Vec::new();
    let mut nulls = if schema.format()? == "n" { array.length() } else { 0 };
    if has_validity {
        let bitmap_size = n.div_ceil(8);
        if array.buffer(0)?.is_null() {
            told.push("null".to_owned());
        } else {
            let bitmap = bytes(0, bitmap_size)?;
            nulls = (array.offset()..n).filter(|i| bitmap[i / 8] >> (i % 8) & 1 == 0).count();
            told.push(buffer(bitmap));
        }
    }
    for size in wanted {
        told.push(buffer(bytes(told.len(), size)?));
    }
    if let Some(count) = sizes {
        told.push(format!("sizes of {count}"));
    }
    if told.len() != array.buffers().len() {
        return Err(format!(
            "{} has {} buffers, not {}",
            schema.format()?,
            array.buffers().len(),
            told.len()
        )
        .into());
    }

    let dictionary = array.dictionary()?;
    writeln!(
        text,
        "{:indent$}{}|{}|{}|{}|{nulls}|{}|{}|{}",
        "",
        schema.format()?,
        array.length(),
        array.offset(),
        array.null_count().map_or(-1, |count| count as i128),
        told.join(","),
        array.n_children(),
        u8::from(dictionary.is_some()),
        indent = 2 * depth,
    )?;
    for (field, child) in schema.children().zip(array.children()) {
        // SAFETY: passed on: the promise is for the whole tree.
        unsafe { array_at(text, depth + 1, field?, child?) }?;
    }
    match (schema.dictionary()?, dictionary) {
        // SAFETY: as above.
        (Some(field), Some(values)) => unsafe { array_at(text, depth + 1, field, values) },
        (None, None) => Ok(()),
        _ => Err("a dictionary on one side only".into()),
    }
}

fn buffer(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "empty".to_owned();
    }
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{:x}/{}/{hash:016x}", bytes.as_ptr().addr(), bytes.len())
}
