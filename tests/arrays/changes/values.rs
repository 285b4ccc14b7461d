//! Changes of lengths, of null counts, and of what buffers hold.

use super::Breaks::{Contents, Nothing, Structure};
use super::structs::{has_bitmap, has_data_buffers, has_elements};
use super::{Apply, Breaks, Change};
use crate::arrays::Rng;
use crate::arrays::contents::{VIEW, peek, poke, width};
use crate::export::Tree;

const fn tree(name: &'static str, breaks: Breaks, apply: fn(&mut Tree, &mut Rng) -> Option<()>) -> Change {
    Change { name, breaks, apply: Apply::Tree(apply) }
}

pub const ALL: &[Change] = &[
    tree("an index of no value under a null", Nothing, |tree, rng| {
        tree.dictionary.as_ref()?;
        let slot = slot(tree, rng, false)?;
        poke(&mut tree.buffers[1], width(&tree.format), slot, 100);
        Some(())
    }),
    tree("a text that is not UTF-8 under a null", Nothing, |tree, rng| spoil_text(tree, rng, false)),
    tree("a view of nothing under a null", Nothing, |tree, rng| {
        is_view(tree)?;
        let slot = slot(tree, rng, false)?;
        poke_view(tree, slot, 0, -1);
        Some(())
    }),
    // C26
    tree("a child shorter than its parent", Structure, |tree, _| {
        let end = tree.offset + tree.length;
        let wanted = match tree.format.as_str() {
            "+s" | "+us:4,9" | "+us:0,1" => end,
            "+w:2" => 2 * end,
            _ => return None,
        };
        shorten(tree.children.first_mut()?, wanted - 1)
    }),
    tree("fewer values than runs", Structure, |tree, _| {
        let [ends, values] = tree.children.get_mut(..)? else { return None };
        (tree.format == "+r").then_some(())?;
        shorten(values, ends.length - 1)
    }),
    tree("no runs", Structure, |tree, _| {
        (tree.format == "+r" && has_elements(tree)).then_some(())?;
        shorten(&mut tree.children[0], 0)
    }),
    tree("nulls in run ends", Structure, |tree, _| {
        (tree.format == "+r").then(|| hide_first(&mut tree.children[0], 1))?
    }),
    tree("nulls in run ends, not counted", Contents, |tree, _| {
        (tree.format == "+r").then(|| hide_first(&mut tree.children[0], -1))?
    }),
    tree("nulls in the keys of a map", Structure, |tree, _| {
        (tree.format == "+m").then(|| hide_first(&mut tree.children[0].children[0], 1))?
    }),
    tree("nulls in the keys of a map, not counted", Contents, |tree, _| {
        (tree.format == "+m").then(|| hide_first(&mut tree.children[0].children[0], -1))?
    }),
    tree("nulls in the entries of a map", Structure, |tree, _| {
        (tree.format == "+m").then(|| hide_first(&mut tree.children[0], 1))?
    }),
    tree("a null count that is not the bitmap's", Contents, |tree, _| {
        (has_bitmap(tree) && tree.null_count > 0).then(|| tree.null_count -= 1)
    }),
    tree("nulls without end that are not counted", Contents, |tree, _| {
        (tree.format == "n" && has_elements(tree)).then(|| tree.null_count = 0)
    }),
    tree("offsets that descend", Contents, |tree, rng| {
        let (width, _) = offsets(tree)?;
        let end = (tree.offset + tree.length) as usize;
        let between = tree.offset as usize + 1..end;
        let index = between.start + rng.below(between.len().max(1));
        between.contains(&index).then_some(())?;
        let last = peek(&tree.buffers[1], width, end);
        poke(&mut tree.buffers[1], width, index, last + 1);
        Some(())
    }),
    tree("a first offset below 0", Contents, |tree, _| {
        let (width, _) = offsets(tree)?;
        poke(&mut tree.buffers[1], width, tree.offset as usize, -1);
        Some(())
    }),
    tree("a last offset beyond the child", Contents, |tree, _| {
        let (width, child) = offsets(tree)?;
        poke(&mut tree.buffers[1], width, (tree.offset + tree.length) as usize, i128::from(child?) + 1);
        Some(())
    }),
    tree("a text that is not UTF-8", Contents, |tree, rng| spoil_text(tree, rng, true)),
    tree("a viewed text that is not UTF-8", Contents, |tree, rng| {
        (tree.format == "vu").then_some(())?;
        let slot = slot(tree, rng, true)?;
        let size = peek(&tree.buffers[1], 4, 4 * slot);
        (1..=12).contains(&size).then(|| poke(&mut tree.buffers[1], 1, VIEW * slot + 4, -1))
    }),
    tree("a view of a negative size", Contents, |tree, rng| {
        is_view(tree)?;
        let slot = slot(tree, rng, true)?;
        poke_view(tree, slot, 0, -1);
        Some(())
    }),
    tree("a view with something behind its value", Contents, |tree, rng| {
        is_view(tree)?;
        let slot = slot(tree, rng, true)?;
        (peek(&tree.buffers[1], 4, 4 * slot) < 12).then(|| poke(&mut tree.buffers[1], 1, VIEW * slot + 15, 1))
    }),
    tree("a view that begins otherwise than its data", Contents, |tree, rng| {
        let slot = long_view(tree, rng)?;
        poke_view(tree, slot, 1, 0);
        Some(())
    }),
    tree("a view of a buffer that there is not", Contents, |tree, rng| {
        let slot = long_view(tree, rng)?;
        let count = tree.buffers.len() as i128 - 3;
        poke_view(tree, slot, 2, count);
        Some(())
    }),
    tree("a view of a buffer below 0", Contents, |tree, rng| {
        let slot = long_view(tree, rng)?;
        poke_view(tree, slot, 2, -1);
        Some(())
    }),
    tree("a view beyond its data", Contents, |tree, rng| {
        let slot = long_view(tree, rng)?;
        poke_view(tree, slot, 3, i32::MAX.into());
        Some(())
    }),
    tree("a view before its data", Contents, |tree, rng| {
        let slot = long_view(tree, rng)?;
        poke_view(tree, slot, 3, -1);
        Some(())
    }),
    tree("a data buffer of a negative size", Contents, |tree, _| {
        let variadic = has_data_buffers(tree) && has_elements(tree);
        variadic.then(|| poke(tree.buffers.last_mut().unwrap(), 8, 0, -1))
    }),
    tree("a type id of no child", Contents, |tree, rng| {
        tree.format.starts_with("+u").then_some(())?;
        let slot = slot(tree, rng, true)?;
        poke(&mut tree.buffers[0], 1, slot, 77);
        Some(())
    }),
    tree("a type id below 0", Contents, |tree, rng| {
        tree.format.starts_with("+u").then_some(())?;
        let slot = slot(tree, rng, true)?;
        poke(&mut tree.buffers[0], 1, slot, -1);
        Some(())
    }),
    tree("a union's offset below 0", Contents, |tree, rng| {
        let slot = dense(tree, rng)?;
        poke(&mut tree.buffers[1], 4, slot, -1);
        Some(())
    }),
    tree("a union's offset beyond the child", Contents, |tree, rng| {
        let slot = dense(tree, rng)?;
        let length = tree.children.iter().map(|child| child.length).max()?;
        poke(&mut tree.buffers[1], 4, slot, length.into());
        Some(())
    }),
    tree("a union's offset that goes back", Contents, |tree, _| {
        tree.format.starts_with("+ud").then_some(())?;
        let (first, second) = (tree.offset as usize, tree.offset as usize + 1);
        let id = |slot| peek(&tree.buffers[0], 1, slot);
        let long = tree.children.iter().all(|child| child.length >= 2);
        (long && tree.length >= 2 && id(first) == id(second)).then_some(())?;
        poke(&mut tree.buffers[1], 4, first, 1);
        poke(&mut tree.buffers[1], 4, second, 0);
        Some(())
    }),
    tree("two run ends in one place", Contents, |tree, _| {
        let (ends, width) = run_ends(tree)?;
        (ends.length >= 2).then(|| {
            let first = peek(&ends.buffers[1], width, 0);
            poke(&mut ends.buffers[1], width, 1, first);
        })
    }),
    tree("a run that ends at 0", Contents, |tree, _| {
        let (ends, width) = run_ends(tree)?;
        (ends.length >= 1).then(|| poke(&mut ends.buffers[1], width, 0, 0))
    }),
    tree("runs that end too early", Contents, |tree, _| {
        has_elements(tree).then_some(())?;
        let wanted = i128::from(tree.offset + tree.length) - 1;
        let (ends, width) = run_ends(tree)?;
        let last = (ends.length as usize).checked_sub(1)?;
        let before = last.checked_sub(1).map_or(0, |index| peek(&ends.buffers[1], width, index));
        (before < wanted).then(|| poke(&mut ends.buffers[1], width, last, wanted))
    }),
    tree("a dictionary index below 0", Contents, |tree, rng| {
        matches!(tree.format.as_str(), "c" | "s" | "i" | "l").then_some(())?;
        index(tree, rng, |_| -1)
    }),
    tree("a dictionary index of no value", Contents, |tree, rng| index(tree, rng, i128::from)),
    tree("a list view of a negative size", Contents, |tree, rng| list_view(tree, rng, 2, |_| -1)),
    tree("a list view before its child", Contents, |tree, rng| list_view(tree, rng, 1, |_| -1)),
    tree("a list view beyond its child", Contents, |tree, rng| {
        list_view(tree, rng, 2, |length| i128::from(length) + 1)
    }),
];

/// A slot of the array that is valid, or null.
fn slot(tree: &Tree, rng: &mut Rng, valid: bool) -> Option<usize> {
    let bits = has_bitmap(tree).then(|| tree.buffers[0].as_ref()).flatten();
    let is_valid = |slot: usize| bits.is_none_or(|bits| bits[slot / 8] >> (slot % 8) & 1 == 1);
    let (offset, length) = (tree.offset as usize, tree.length as usize);
    let start = rng.below(length.max(1));
    (0..length).map(|slot| offset + (start + slot) % length).find(|slot| is_valid(*slot) == valid)
}

/// Width of the offsets, and the length of what they are offsets into where that is known.
fn offsets(tree: &Tree) -> Option<(usize, Option<i64>)> {
    has_elements(tree).then_some(())?;
    let child = tree.children.first().map(|child| child.length);
    match tree.format.as_str() {
        "z" | "u" | "+l" | "+m" => Some((4, child)),
        "Z" | "U" | "+L" => Some((8, child)),
        _ => None,
    }
}

fn spoil_text(tree: &mut Tree, rng: &mut Rng, valid: bool) -> Option<()> {
    matches!(tree.format.as_str(), "u" | "U").then_some(())?;
    let (width, _) = offsets(tree)?;
    let slot = slot(tree, rng, valid)?;
    let [start, end] = [slot, slot + 1].map(|slot| peek(&tree.buffers[1], width, slot));
    (start < end).then(|| poke(&mut tree.buffers[2], 1, start as usize, -1))
}

fn is_view(tree: &Tree) -> Option<()> {
    tree.format.starts_with('v').then_some(())
}

/// A valid slot whose view is of a data buffer.
fn long_view(tree: &Tree, rng: &mut Rng) -> Option<usize> {
    is_view(tree)?;
    slot(tree, rng, true).filter(|slot| peek(&tree.buffers[1], 4, 4 * slot) > 12)
}

/// Writes one of the four numbers of a view.
fn poke_view(tree: &mut Tree, slot: usize, number: usize, value: i128) {
    poke(&mut tree.buffers[1], 4, 4 * slot + number, value);
}

fn dense(tree: &Tree, rng: &mut Rng) -> Option<usize> {
    tree.format.starts_with("+ud").then_some(())?;
    slot(tree, rng, true)
}

fn run_ends(tree: &mut Tree) -> Option<(&mut Tree, usize)> {
    (tree.format == "+r").then_some(())?;
    let ends = &mut tree.children[0];
    let width = width(&ends.format);
    Some((ends, width))
}

/// Points a valid element elsewhere.
fn index(tree: &mut Tree, rng: &mut Rng, to: fn(i64) -> i128) -> Option<()> {
    let length = tree.dictionary.as_ref()?.length;
    let slot = slot(tree, rng, true)?;
    poke(&mut tree.buffers[1], width(&tree.format), slot, to(length));
    Some(())
}

fn list_view(tree: &mut Tree, rng: &mut Rng, buffer: usize, to: fn(i64) -> i128) -> Option<()> {
    tree.format.starts_with("+v").then_some(())?;
    let slot = slot(tree, rng, true)?;
    let width = if tree.format == "+vL" { 8 } else { 4 };
    poke(&mut tree.buffers[buffer], width, slot, to(tree.children[0].length));
    Some(())
}

/// Makes it so long and no longer, if it is longer.
fn shorten(tree: &mut Tree, length: i64) -> Option<()> {
    (0..tree.length).contains(&length).then(|| {
        tree.length = length;
        tree.null_count = match tree.format.as_str() {
            "n" => length,
            _ if has_bitmap(tree) && tree.buffers[0].is_some() => -1,
            _ => 0,
        };
    })
}

/// Makes the first element null and all others valid.
fn hide_first(tree: &mut Tree, null_count: i64) -> Option<()> {
    has_elements(tree).then(|| {
        let mut bits = vec![u8::MAX; ((tree.offset + tree.length) as usize).div_ceil(8)];
        bits[tree.offset as usize / 8] &= !(1 << (tree.offset % 8));
        tree.buffers[0] = Some(bits);
        tree.null_count = null_count;
    })
}
