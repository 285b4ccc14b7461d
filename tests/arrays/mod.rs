//! Random valid arrays of every type, and what can be done to them: changes that stay within the format, and faults.
#![allow(dead_code, reason = "each program uses a part")]

pub mod changes;
pub mod contents;
pub mod logical;

use crate::export::{Bytes, Tree};

/// Random numbers that are the same on every machine (xorshift64*).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        // Not zero, and neighbouring seeds far apart.
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Formats without children; of each kind of buffers at least one, and every letter.
pub const LEAVES: [&str; 43] = [
    "n",
    "b",
    "c",
    "C",
    "s",
    "S",
    "i",
    "I",
    "l",
    "L",
    "e",
    "f",
    "g",
    "z",
    "Z",
    "u",
    "U",
    "vz",
    "vu",
    "d:7,2,32",
    "d:15,3,64",
    "d:30,4",
    "d:60,1,256",
    "w:3",
    "w:0",
    "tdD",
    "tdm",
    "tts",
    "ttm",
    "ttu",
    "ttn",
    "tss:",
    "tsm:Europe/Paris",
    "tsu:",
    "tsn:+01:00",
    "tDs",
    "tDm",
    "tDu",
    "tDn",
    "tiM",
    "tiD",
    "tin",
    "w:16",
];

/// Formats with children.
pub const NESTED: [&str; 12] =
    ["+s", "+l", "+L", "+vl", "+vL", "+w:2", "+w:0", "+m", "+ud:4,9", "+us:4,9", "+ud:0,1", "+r"];

pub const INTEGERS: [&str; 8] = ["c", "C", "s", "S", "i", "I", "l", "L"];

/// Where an array stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// What its parent needs.
    length: usize,
    no_nulls: bool,
    depth: usize,
}

/// A random valid array of some type.
pub fn array(rng: &mut Rng) -> Tree {
    let length = rng.pick(&[0, 1, 2, 7, 8, 9, 20]);
    node(rng, Place { length, ..Place::default() })
}

/// A random valid array of this format, which is no dictionary-encoded one.
pub fn array_of(rng: &mut Rng, format: &str, length: usize) -> Tree {
    of_format(rng, format, Place { length, ..Place::default() })
}

fn node(rng: &mut Rng, place: Place) -> Tree {
    match rng.below(8) {
        0..3 if place.depth < 3 => {
            let format = rng.pick(&NESTED);
            of_format(rng, format, place)
        }
        3 if place.depth < 3 => encoded(rng, place),
        _ => {
            let format = rng.pick(&LEAVES);
            of_format(rng, format, place)
        }
    }
}

fn encoded(rng: &mut Rng, place: Place) -> Tree {
    let length = 1 + rng.below(5);
    let values = node(rng, Place { length, depth: place.depth + 1, no_nulls: false });
    let format = rng.pick(&INTEGERS);
    let mut tree = of_format(rng, format, place);
    let end = (tree.offset + tree.length) as usize;
    let length = values.length as usize;
    tree.buffers[1] = contents::integers(format, (0..end).map(|_| rng.below(length) as i128));
    tree.dictionary = Some(Box::new(values));
    tree
}

fn of_format(rng: &mut Rng, format: &str, place: Place) -> Tree {
    let offset = rng.pick(&[0, 0, 0, 1, 3, 9]);
    let length = place.length + rng.pick(&[0, 0, 2]);
    let end = offset + length;
    let mut tree = Tree {
        format: format.to_owned(),
        length: length as i64,
        null_count: 0,
        offset: offset as i64,
        buffers: Vec::new(),
        children: Vec::new(),
        dictionary: None,
    };
    if format == "n" {
        tree.null_count = tree.length;
        return tree;
    }
    if !matches!(format, "+r") && !format.starts_with("+u") {
        validity(rng, &mut tree, end, place.no_nulls);
    }
    let below = Place { depth: place.depth + 1, ..Place::default() };
    let kind = format.split(':').next().unwrap_or(format);
    match kind {
        "z" | "u" | "Z" | "U" => {
            let words: Vec<_> = (0..end).map(|_| contents::word(rng)).collect();
            // The first offset need not be 0.
            let before = if rng.one_in(3) { "øø" } else { "" };
            let ends = words.iter().scan(before.len(), |at, word| {
                *at += word.len();
                Some(*at as i128)
            });
            let all = [before.len() as i128].into_iter().chain(ends);
            let offsets = contents::integers(if matches!(kind, "z" | "u") { "i" } else { "l" }, all);
            tree.buffers.extend([offsets, Some((before.to_owned() + &words.concat()).into_bytes())]);
        }
        "vz" | "vu" => contents::views(rng, &mut tree, end),
        "+l" | "+L" | "+m" => {
            let sizes: Vec<_> = (0..end).map(|_| rng.below(4)).collect();
            let before = rng.below(2);
            let ends = sizes.iter().scan(before, |at, size| {
                *at += size;
                Some(*at as i128)
            });
            let all = [before as i128].into_iter().chain(ends);
            tree.buffers.push(contents::integers(if kind == "+L" { "l" } else { "i" }, all));
            let length = before + sizes.iter().sum::<usize>();
            let child =
                if kind == "+m" { entries(rng, length, below) } else { node(rng, Place { length, ..below }) };
            tree.children.push(child);
        }
        "+vl" | "+vL" => {
            let length = rng.below(9);
            let child = node(rng, Place { length, ..below });
            let length = child.length as usize;
            let pairs = (0..end).map(|_| {
                let start = rng.below(length + 1);
                (start as i128, rng.below(length - start + 1) as i128)
            });
            let (starts, sizes): (Vec<_>, Vec<_>) = pairs.unzip();
            let width = if kind == "+vL" { "l" } else { "i" };
            tree.buffers.extend([starts, sizes].map(|all| contents::integers(width, all)));
            tree.children.push(child);
        }
        "+w" => {
            let size: usize = format[3..].parse().expect("a size");
            tree.children.push(node(rng, Place { length: end * size, ..below }));
        }
        "+s" => {
            let children = (0..rng.below(4)).map(|_| node(rng, Place { length: end, ..below }));
            tree.children.extend(children);
        }
        "+us" | "+ud" => {
            let ids: Vec<i128> = format[4..].split(',').map(|id| id.parse().expect("an id")).collect();
            let dense = kind == "+ud";
            let lengths = if dense { 1 } else { end };
            tree.children.extend((0..2).map(|_| node(rng, Place { length: lengths, ..below })));
            let which: Vec<_> = (0..end).map(|_| rng.below(2)).collect();
            tree.buffers.push(contents::integers("c", which.iter().map(|child| ids[*child])));
            if dense {
                let mut last = [0; 2];
                let offsets = which.iter().map(|child| {
                    last[*child] += rng.below(tree.children[*child].length as usize - last[*child]);
                    last[*child] as i128
                });
                let offsets: Vec<_> = offsets.collect();
                tree.buffers.push(contents::integers("i", offsets));
            }
        }
        "+r" => {
            let mut ends = Vec::new();
            while ends.last().is_none_or(|last| *last < end) {
                ends.push(ends.last().unwrap_or(&0) + 1 + rng.below(4));
            }
            let runs = ends.len();
            let format = rng.pick(&["s", "i", "l"]);
            let values = node(rng, Place { length: runs, ..below });
            // Arrow C++ wants as many values as runs; and run ends without an offset.
            let run_ends = contents::integers(format, ends.into_iter().map(|end| end as i128));
            tree.children.push(Tree { children: Vec::new(), ..leaf(format, runs, run_ends) });
            tree.children.push(Tree { length: runs as i64, ..shortened(values, runs) });
        }
        _ => tree.buffers.push(contents::values(rng, format, end)),
    }
    tree
}

fn leaf(format: &str, length: usize, values: Bytes) -> Tree {
    Tree {
        format: format.to_owned(),
        length: length as i64,
        null_count: 0,
        offset: 0,
        buffers: vec![None, values],
        children: Vec::new(),
        dictionary: None,
    }
}

/// The same with fewer elements: their nulls are not counted any more.
fn shortened(tree: Tree, length: usize) -> Tree {
    let null_count = match tree.format.as_str() {
        "n" => length as i64,
        _ if tree.null_count == 0 => 0,
        _ => -1,
    };
    Tree { length: length as i64, null_count, ..tree }
}

/// Of a map: keys without nulls, and values.
fn entries(rng: &mut Rng, length: usize, below: Place) -> Tree {
    let place = Place { length, no_nulls: true, ..below };
    let mut tree = of_format(rng, "+s", place);
    let length = (tree.offset + tree.length) as usize;
    let key = rng.pick(&["i", "u", "vu", "w:3"]);
    let key = of_format(rng, key, Place { length, ..place });
    tree.children = vec![key, node(rng, Place { length, ..below })];
    tree
}

fn validity(rng: &mut Rng, tree: &mut Tree, end: usize, no_nulls: bool) {
    let bits: Vec<bool> = match rng.below(3) {
        0 => {
            tree.buffers.push(None);
            return;
        }
        1 => vec![true; end],
        _ => (0..end).map(|_| no_nulls || !rng.one_in(3)).collect(),
    };
    let nulls = bits.iter().skip(tree.offset as usize).filter(|bit| !**bit).count();
    tree.null_count = if rng.one_in(3) { -1 } else { nulls as i64 };
    tree.buffers.push(contents::bits(&bits));
}
