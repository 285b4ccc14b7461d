//! Data made in Rust: a batch with a column for every layout of the format, whose values follow from the row's number.
//!
//! The rule is written down a second time in the language of each peer (`made.h`, `nanoarrow_values.h`,
//! `layouts.py`), where it tells what the peer has to read. `python_exchange.rs` has this module too.

mod schema;

use core::ffi::c_void;
use core::ptr;

use arrow_device_abi::SchemaNode;
use arrow_device_abi::raw::ARROW_FLAG_NULLABLE;

use crate::trees::ArrayTree;

pub use schema::SCHEMA;

/// Rows of a whole batch.
const ROWS: i64 = 10;

/// The batches that are made, in order.
#[derive(Debug, Clone, Copy)]
pub enum Variant {
    /// Row 1, and every fourth from there on, is null.
    SomeNulls,
    /// No bitmaps.
    NoNulls,
    AllNull,
    /// Rows 3 to 8 of [`SomeNulls`](Self::SomeNulls), by an offset in each column; nulls are not counted.
    Sliced,
    /// No rows; buffers without bytes are null pointers.
    Empty,
}

impl Variant {
    pub const ALL: [Self; 5] = [Self::SomeNulls, Self::NoNulls, Self::AllNull, Self::Sliced, Self::Empty];

    fn is_null(self, row: i64) -> bool {
        match self {
            Self::NoNulls => false,
            Self::AllNull => true,
            _ => row % 4 == 1,
        }
    }
}

/// The memory of a batch: what its buffers point to. Spoilt before it is freed, so that whoever still reads it is found
/// out.
#[derive(Debug, Default)]
pub struct Memory(Vec<Box<[u64]>>);

impl Memory {
    /// Keeps the bytes; a null pointer if there are none.
    fn put<const N: usize>(&mut self, values: impl IntoIterator<Item = [u8; N]>) -> *const c_void {
        let bytes: Vec<u8> = values.into_iter().flatten().collect();
        if bytes.is_empty() {
            return ptr::null();
        }
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        let words: Box<[u64]> = words.collect();
        let start = words.as_ptr().cast();
        // Moving the box leaves the words where they are.
        self.0.push(words);
        start
    }

    fn put_bits(&mut self, bits: impl ExactSizeIterator<Item = bool>) -> *const c_void {
        let mut bytes = vec![[0]; bits.len().div_ceil(8)];
        for (index, bit) in bits.enumerate() {
            bytes[index / 8][0] |= u8::from(bit) << (index % 8);
        }
        self.put(bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for words in &mut self.0 {
            words.fill(0x5a5a_5a5a_5a5a_5a5a);
            // The compiler must not leave the words as they are because they are freed next.
            core::hint::black_box(words);
        }
    }
}

/// A batch of type [`SCHEMA`], and the memory that it describes.
pub fn batch(variant: Variant) -> (ArrayTree, Memory) {
    let rows = if matches!(variant, Variant::Empty) { 0 } else { ROWS };
    let mut maker = Maker { variant, memory: Memory::default() };
    let mut children: Vec<_> = SCHEMA.children.iter().map(|field| maker.column(field, rows)).collect();
    let mut length = rows;
    if matches!(variant, Variant::Sliced) {
        length = 6;
        for column in &mut children {
            // Without a bitmap there is nothing to count.
            let null_count = match column.null_count {
                0 => 0,
                ROWS => length,
                _ => -1,
            };
            (column.length, column.offset, column.null_count) = (length, 3, null_count);
        }
    }
    (ArrayTree { length, buffers: vec![ptr::null()], children, ..ArrayTree::default() }, maker.memory)
}

/// Unions and run-end encoded arrays have their nulls in a child.
fn has_bitmap(format: &str) -> bool {
    format != "n" && format != "+r" && !format.starts_with("+u")
}

struct Maker {
    variant: Variant,
    memory: Memory,
}

/// How many elements the lists before this row have: each row's has the rest of its number by 4.
fn lists_before(row: i64) -> i64 {
    (0..row).map(|row| row % 4).sum()
}

fn number(row: i64) -> i64 {
    11 * row - 50
}

fn real(row: i64) -> f32 {
    row as f32 / 2.0 - 2.0
}

/// The bits of a half float that a float holds exactly.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let rest = if value == 0.0 { 0 } else { (bits >> 13 & 0x3ff) + (((bits >> 23 & 0xff) - 112) << 10) };
    sign | rest as u16
}

/// The bytes of a number as two of half the size.
fn halves(number: i64) -> [[u8; 4]; 2] {
    let bytes = number.to_ne_bytes();
    [0, 4].map(|start| core::array::from_fn(|index| bytes[start + index]))
}

fn decimal(row: i64) -> i64 {
    1111 * row - 5000
}

fn text(row: i64) -> String {
    match row % 3 {
        0 => String::new(),
        1 => format!("ø{row}"),
        _ => format!("row {row}, told at some length"),
    }
}

impl Maker {
    fn column(&mut self, field: &SchemaNode<'_>, rows: i64) -> ArrayTree {
        let mut column = ArrayTree { length: rows, ..ArrayTree::default() };
        if field.format == "n" {
            column.null_count = rows;
            return column;
        }
        if has_bitmap(field.format) {
            let nullable = field.flags & ARROW_FLAG_NULLABLE != 0;
            let is_null = |row: &i64| nullable && self.variant.is_null(*row);
            column.null_count = (0..rows).filter(is_null).count() as i64;
            let bits: Vec<_> = (0..rows).map(|row| !is_null(&row)).collect();
            let has_nulls = column.null_count > 0;
            column.buffers.push(if has_nulls { self.memory.put_bits(bits.into_iter()) } else { ptr::null() });
        }
        match (field.format.starts_with('+'), field.dictionary) {
            (_, Some(values)) => {
                let indices = self.fixed(field.format, rows, |row| row % 3);
                column.buffers.push(indices);
                column.dictionary = Some(Box::new(self.column(values, rows.min(3))));
            }
            (true, None) => self.nested(field, &mut column),
            (false, None) if matches!(field.format, "z" | "u" | "Z" | "U") => {
                self.texts(field.format, &mut column)
            }
            (false, None) if field.format.starts_with('v') => self.views(&mut column),
            (false, None) => {
                let values = self.values(field.format, rows);
                column.buffers.push(values);
            }
        }
        column
    }

    /// Integers, which are offsets or indices too, of the width that the format says.
    fn fixed(&mut self, format: &str, rows: i64, value: impl Fn(i64) -> i64) -> *const c_void {
        let values = (0..rows).map(value);
        match format {
            "c" | "C" => self.memory.put(values.map(|value| (value as i8).to_ne_bytes())),
            "s" | "S" => self.memory.put(values.map(|value| (value as i16).to_ne_bytes())),
            "i" | "I" => self.memory.put(values.map(|value| (value as i32).to_ne_bytes())),
            _ => self.memory.put(values.map(i64::to_ne_bytes)),
        }
    }

    /// Values of a fixed width.
    fn values(&mut self, format: &str, rows: i64) -> *const c_void {
        let rows = 0..rows;
        let (count, memory) = (rows.end, &mut self.memory);
        let wide = |row| i128::from(decimal(row)) * 1_000_000_000_000;
        match format {
            "b" => memory.put_bits((0..count as usize).map(|row| row % 3 == 0)),
            "c" | "s" | "i" => self.fixed(format, count, number),
            "C" | "S" | "I" => self.fixed(format, count, |row| 11 * row),
            "L" => self.fixed(format, count, |row| i64::MIN + 11 * row),
            "e" => memory.put(rows.map(|row| half(real(row)).to_ne_bytes())),
            "f" => memory.put(rows.map(|row| real(row).to_ne_bytes())),
            "g" => memory.put(rows.map(|row| f64::from(real(row)).to_ne_bytes())),
            "d:7,2,32" => self.fixed("i", count, decimal),
            "d:15,3,64" => self.fixed("l", count, decimal),
            "d:30,4" => memory.put(rows.map(|row| wide(row).to_ne_bytes())),
            // The words in the order of the platform's bytes, as the whole number would have them.
            "d:60,1,256" => memory.put(rows.flat_map(|row| {
                let (low, high) = (wide(row), wide(row) >> 127);
                let words = if cfg!(target_endian = "little") { [low, high] } else { [high, low] };
                words.map(i128::to_ne_bytes)
            })),
            "tdD" | "tts" | "ttm" => self.fixed("i", count, |row| 11 * row),
            "tdm" => self.fixed("l", count, |row| 86_400_000 * row),
            "ttu" | "ttn" => self.fixed("l", count, |row| 11 * row),
            "tiM" => self.fixed("i", count, number),
            "tiD" => {
                memory.put(rows.flat_map(|row| [row, number(row)].map(|part| (part as i32).to_ne_bytes())))
            }
            "tin" => memory.put(rows.flat_map(|row| {
                let days = (row as i32, number(row) as i32);
                [days.0.to_ne_bytes(), days.1.to_ne_bytes()].into_iter().chain(halves(1_000_000_007 * row))
            })),
            "w:3" => memory.put(rows.flat_map(|row| format!("{row:03}").into_bytes()).map(|byte| [byte])),
            "w:16" => memory.put(rows.flat_map(|row| format!("{row:016}").into_bytes()).map(|byte| [byte])),
            // Signed 64-bit integers, timestamps, durations.
            _ => self.fixed("l", count, |row| 1_000_000_007 * number(row)),
        }
    }

    /// What a list, a map or a binary column has before each row, and in all. The format lets an array without rows do
    /// without offsets; Arrow C++ does not.
    fn offsets(&mut self, wide: bool, rows: i64, before: impl Fn(i64) -> i64) -> *const c_void {
        self.fixed(if wide { "l" } else { "i" }, rows + 1, before)
    }

    fn texts(&mut self, format: &str, column: &mut ArrayTree) {
        let texts: Vec<_> = (0..column.length).map(text).collect();
        let before = |row: i64| texts.iter().take(row as usize).map(|text| text.len() as i64).sum();
        let offsets = self.offsets(matches!(format, "Z" | "U"), column.length, before);
        let bytes = self.memory.put(texts.concat().into_bytes().into_iter().map(|byte| [byte]));
        column.buffers.extend([offsets, bytes]);
    }

    /// Views into two data buffers, by turns.
    fn views(&mut self, column: &mut ArrayTree) {
        let mut data = [Vec::new(), Vec::new()];
        let mut views = Vec::new();
        for text in (0..column.length).map(text).map(String::into_bytes) {
            let mut view = [0; 16];
            view[..4].copy_from_slice(&(text.len() as i32).to_ne_bytes());
            if text.len() <= 12 {
                view[4..4 + text.len()].copy_from_slice(&text);
            } else {
                let index = usize::from(data[0].len() > data[1].len());
                view[4..8].copy_from_slice(&text[..4]);
                view[8..12].copy_from_slice(&(index as i32).to_ne_bytes());
                view[12..].copy_from_slice(&(data[index].len() as i32).to_ne_bytes());
                data[index].extend(text);
            }
            views.push(view);
        }
        column.buffers.push(self.memory.put(views));
        let sizes = data.each_ref().map(Vec::len);
        for bytes in data.into_iter().filter(|bytes| !bytes.is_empty()) {
            column.buffers.push(self.memory.put(bytes.into_iter().map(|byte| [byte])));
        }
        let sizes = sizes.into_iter().filter(|size| *size > 0).map(|size| (size as i64).to_ne_bytes());
        column.buffers.push(self.memory.put(sizes));
    }

    fn nested(&mut self, field: &SchemaNode<'_>, column: &mut ArrayTree) {
        let rows = column.length;
        let n_children = field.children.len() as i64;
        let (kind, parameter) = field.format.split_once(':').unwrap_or((field.format, ""));
        let wide = kind.ends_with('L');
        // How many rows each child has.
        let child_rows: &dyn Fn(i64) -> i64 = match kind {
            "+l" | "+L" | "+m" => {
                let offsets = self.offsets(wide, rows, lists_before);
                column.buffers.push(offsets);
                &|_| lists_before(rows)
            }
            "+vl" | "+vL" => {
                let width = if wide { "l" } else { "i" };
                // From the back to the front, one over the other.
                let offsets = self.fixed(width, rows, |row| rows - row);
                let sizes = self.fixed(width, rows, |row| row % 4);
                column.buffers.extend([offsets, sizes]);
                &|_| if rows == 0 { 0 } else { rows + 3 }
            }
            "+w" => {
                let size: i64 = parameter.parse().unwrap_or_default();
                &move |_| rows * size
            }
            "+us" | "+ud" => {
                let ids: Vec<i64> = parameter.split(',').filter_map(|id| id.parse().ok()).collect();
                let ids = self.fixed("c", rows, |row| ids[(row % n_children) as usize]);
                column.buffers.push(ids);
                if kind == "+us" {
                    &|_| rows
                } else {
                    let offsets = self.fixed("i", rows, |row| row / n_children);
                    column.buffers.push(offsets);
                    &|child| (rows + n_children - 1 - child) / n_children
                }
            }
            "+r" => &|_| (rows + 1) / 2,
            _ => &|_| rows,
        };
        for (index, child) in field.children.iter().enumerate() {
            column.children.push(self.column(child, child_rows(index as i64)));
        }
        if kind == "+r" {
            let runs = column.children[0].length;
            let ends = self.fixed(field.children[0].format, runs, |run| rows.min(2 * run + 2));
            column.children[0].buffers[1] = ends;
        }
    }
}
