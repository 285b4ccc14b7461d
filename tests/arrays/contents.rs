//! The bytes of buffers.

use super::Rng;
use crate::export::{Bytes, Tree};

pub fn bits(bits: &[bool]) -> Bytes {
    let mut bytes = vec![0; bits.len().div_ceil(8)];
    for (index, bit) in bits.iter().enumerate() {
        bytes[index / 8] |= u8::from(*bit) << (index % 8);
    }
    Some(bytes)
}

/// Bytes of an integer format.
pub fn width(format: &str) -> usize {
    match format {
        "c" | "C" => 1,
        "s" | "S" => 2,
        "i" | "I" => 4,
        _ => 8,
    }
}

/// Integers of the format, or offsets, sizes and type ids of its width.
pub fn integers(format: &str, values: impl IntoIterator<Item = i128>) -> Bytes {
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend(integer(width(format), value));
    }
    Some(bytes)
}

fn integer(width: usize, value: i128) -> Vec<u8> {
    match width {
        1 => (value as i8).to_ne_bytes().to_vec(),
        2 => (value as i16).to_ne_bytes().to_vec(),
        4 => (value as i32).to_ne_bytes().to_vec(),
        _ => (value as i64).to_ne_bytes().to_vec(),
    }
}

/// Writes one integer of this width into a buffer.
pub fn poke(buffer: &mut Bytes, width: usize, index: usize, value: i128) {
    let bytes = buffer.as_mut().expect("a buffer that is there");
    bytes[index * width..(index + 1) * width].copy_from_slice(&integer(width, value));
}

/// Reads one.
pub fn peek(buffer: &Bytes, width: usize, index: usize) -> i128 {
    let bytes = &buffer.as_ref().expect("a buffer that is there")[index * width..(index + 1) * width];
    match width {
        1 => i8::from_ne_bytes(bytes.try_into().unwrap()).into(),
        2 => i16::from_ne_bytes(bytes.try_into().unwrap()).into(),
        4 => i32::from_ne_bytes(bytes.try_into().unwrap()).into(),
        _ => i64::from_ne_bytes(bytes.try_into().unwrap()).into(),
    }
}

pub fn word(rng: &mut Rng) -> String {
    let length = rng.pick(&[0, 0, 1, 3, 12, 13, 20]);
    let mut word: String = (0..length).map(|_| rng.pick(&['a', 'z', '0', ' '])).collect();
    if rng.one_in(3) {
        word.push('ø');
    }
    word
}

/// Of a fixed width; what their types allow.
pub fn values(rng: &mut Rng, format: &str, count: usize) -> Bytes {
    let mut small = |width: usize, unit: i128| {
        let values = (0..count).map(|_| rng.below(100) as i128 * unit);
        let bytes = values.flat_map(|value| {
            let mut bytes = vec![0; width];
            let word = integer(width.min(8), value);
            let at = if cfg!(target_endian = "little") { 0 } else { width - word.len() };
            bytes[at..at + word.len()].copy_from_slice(&word);
            bytes
        });
        Some(bytes.collect::<Vec<u8>>())
    };
    match format {
        "b" => Some(small(1, 1).into_iter().flatten().take(count.div_ceil(8)).collect()),
        "w:0" => Some(Vec::new()),
        "w:3" => Some(vec![b'x'; 3 * count]),
        "c" | "C" => small(1, 1),
        "s" | "S" | "e" => small(2, 1),
        "i" | "I" | "f" | "d:7,2,32" | "tdD" | "tts" | "ttm" | "tiM" => small(4, 1),
        "tdm" => small(8, 86_400_000),
        "d:30,4" | "tin" | "w:16" => small(16, 1),
        "d:60,1,256" => small(32, 1),
        _ => small(8, 1),
    }
}

/// Bytes of a view.
pub const VIEW: usize = 16;

/// Views into up to three data buffers.
pub fn views(rng: &mut Rng, tree: &mut Tree, count: usize) {
    let mut data: Vec<Vec<u8>> = vec![Vec::new(); rng.below(4)];
    let mut views = Vec::new();
    for _ in 0..count {
        let mut word = word(rng).into_bytes();
        if data.is_empty() && word.len() > 12 {
            word.truncate(5);
        }
        views.extend(integer(4, word.len() as i128));
        if word.len() <= 12 {
            word.resize(12, 0);
            views.extend(word);
        } else {
            let index = rng.below(data.len());
            views.extend(&word[..4]);
            views.extend(integer(4, index as i128));
            views.extend(integer(4, data[index].len() as i128));
            data[index].extend(word);
        }
    }
    let sizes = integers("l", data.iter().map(|data| data.len() as i128));
    tree.buffers.push(Some(views));
    tree.buffers.extend(data.into_iter().map(Some));
    tree.buffers.push(sizes);
}
