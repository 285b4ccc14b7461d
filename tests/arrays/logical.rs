//! What an array means: its elements as text, whatever its offsets and buffers are.

use arrow_device_abi::{ArrayView, SchemaView};

use super::contents::width;

/// All elements, in order.
pub fn elements(schema: SchemaView<'_>, array: ArrayView<'_>) -> Vec<String> {
    (0..array.length()).map(|index| element(schema, array, index)).collect()
}

fn bytes<'a>(array: ArrayView<'a>, buffer: usize, from: usize, count: usize) -> &'a [u8] {
    // SAFETY: the arrays of these tests are valid, in host memory, and nobody asks for more bytes than they have.
    &unsafe { array.buffer_as::<u8>(buffer, from + count) }.unwrap()[from..]
}

fn number(array: ArrayView<'_>, buffer: usize, width: usize, index: usize) -> i64 {
    let bytes = bytes(array, buffer, index * width, width);
    match width {
        1 => i8::from_ne_bytes(bytes.try_into().unwrap()).into(),
        2 => i16::from_ne_bytes(bytes.try_into().unwrap()).into(),
        4 => i32::from_ne_bytes(bytes.try_into().unwrap()).into(),
        _ => i64::from_ne_bytes(bytes.try_into().unwrap()),
    }
}

fn size(array: ArrayView<'_>, buffer: usize, width: usize, index: usize) -> usize {
    number(array, buffer, width, index).try_into().unwrap()
}

fn bit(array: ArrayView<'_>, buffer: usize, index: usize) -> bool {
    bytes(array, buffer, index / 8, 1)[0] >> (index % 8) & 1 == 1
}

/// The element with this index, counted from the array's offset.
fn element(schema: SchemaView<'_>, array: ArrayView<'_>, index: usize) -> String {
    let at = array.offset() + index;
    let format = schema.format().unwrap();
    let has_bitmap = !matches!(format, "n" | "+r") && !format.starts_with("+u");
    if format == "n" || has_bitmap && !array.buffers()[0].is_null() && !bit(array, 0, at) {
        return "null".into();
    }
    if let Some((schema, values)) = schema.dictionary().unwrap().zip(array.dictionary().unwrap()) {
        return element(schema, values, size(array, 1, width(format), at));
    }
    let child =
        |child: usize, index| element(schema.child(child).unwrap(), array.child(child).unwrap(), index);
    let list = |range: core::ops::Range<usize>| {
        format!("[{}]", range.map(|index| child(0, index)).collect::<String>())
    };
    let all = |index| (0..array.n_children()).map(|one| child(one, index) + ";").collect::<String>();
    let (kind, parameter) = format.split_once(':').unwrap_or((format, ""));
    let wide = if matches!(kind, "Z" | "U" | "+L" | "+vL") { 8 } else { 4 };
    match kind {
        "b" => bit(array, 1, at).to_string(),
        "z" | "Z" | "u" | "U" => {
            let [from, to] = [at, at + 1].map(|at| size(array, 1, wide, at));
            format!("{:?}", bytes(array, 2, from, to - from))
        }
        "vz" | "vu" => {
            let length = size(array, 1, 4, 4 * at);
            if length <= 12 {
                return format!("{:?}", bytes(array, 1, 16 * at + 4, length));
            }
            let [buffer, from] = [2, 3].map(|number| size(array, 1, 4, 4 * at + number));
            format!("{:?}", bytes(array, 2 + buffer, from, length))
        }
        "+l" | "+L" | "+m" => list(size(array, 1, wide, at)..size(array, 1, wide, at + 1)),
        "+vl" | "+vL" => {
            let start = size(array, 1, wide, at);
            list(start..start + size(array, 2, wide, at))
        }
        "+w" => {
            let size: usize = parameter.parse().unwrap();
            list(at * size..(at + 1) * size)
        }
        "+s" => format!("{{{}}}", all(at)),
        "+us" | "+ud" => {
            let id = number(array, 0, 1, at);
            let which = parameter.split(',').position(|one| one == id.to_string()).unwrap();
            let index = if kind == "+ud" { size(array, 1, 4, at) } else { at };
            format!("{id}={}", child(which, index))
        }
        "+r" => {
            let (ends, format) = (array.child(0).unwrap(), schema.child(0).unwrap().format().unwrap());
            let width = width(format);
            let run = (0..ends.length()).position(|run| size(ends, 1, width, ends.offset() + run) > at);
            child(1, run.unwrap())
        }
        _ => {
            let width = match kind {
                "w" => parameter.parse().unwrap(),
                "d" => match parameter.split(',').nth(2) {
                    Some(bits) => bits.parse::<usize>().unwrap() / 8,
                    None => 16,
                },
                "c" | "C" => 1,
                "s" | "S" | "e" => 2,
                "i" | "I" | "f" | "tdD" | "tts" | "ttm" | "tiM" => 4,
                "tin" => 16,
                _ => 8,
            };
            format!("{:?}", bytes(array, 1, at * width, width))
        }
    }
}
