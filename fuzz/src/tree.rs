//! Pairs of schema and array.

use core::ffi::{c_char, c_void};
use core::ptr;

use arrow_device_abi::format::{BufferKind, Format};
use arrow_device_abi::raw::{ArrowArray, ArrowSchema};

use crate::arena::{Arena, release_array, release_schema};
use crate::input::Input;

/// What the fuzzer mostly uses: the formats of the specification, and some that are none.
const FORMATS: &[&str] = &[
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
    "d:9,2,32",
    "d:18,2,64",
    "d:38,10",
    "d:76,0,256",
    "w:0",
    "w:3",
    "w:2147483647",
    "tdD",
    "tdm",
    "tts",
    "ttn",
    "tss:",
    "tsn:x",
    "tDu",
    "tiM",
    "tiD",
    "tin",
    "+l",
    "+L",
    "+vl",
    "+vL",
    "+w:0",
    "+w:2",
    "+w:2147483647",
    "+s",
    "+s",
    "+s",
    "+m",
    "+ud:0,1",
    "+us:0,1",
    "+ud:",
    "+us:5,127",
    "+r",
    "+r",
    "",
    "x",
    "+",
    "d:",
    "w:-1",
    "+us:0,0",
    "+ud:128",
];

/// How many elements there may be before offset and end in buffers that are there.
const MOST: usize = 64;

/// A schema's node and the array's that belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub schema: *mut ArrowSchema,
    pub array: *mut ArrowArray,
}

/// What a node is made of. Its numbers are chosen before its children, so that these can fit.
struct Node {
    format: String,
    length: i64,
    offset: i64,
}

impl Pair {
    /// A pair out of the input, with all that it points to in the arena.
    pub fn new(input: &mut Input<'_>, arena: &mut Arena) -> Self {
        Self::node(input, arena, &mut Vec::new(), 4, None)
    }

    /// `above` are the nodes from the root on, to which a node may point back.
    fn node(
        input: &mut Input<'_>,
        arena: &mut Arena,
        above: &mut Vec<Self>,
        near: i64,
        format: Option<&str>,
    ) -> Self {
        let place =
            Self { schema: arena.keep(ArrowSchema::released()), array: arena.keep(ArrowArray::released()) };
        let format = match (format, input.byte()) {
            (Some(format), 0..=239) => format.to_owned(),
            (_, 250..) => {
                let length = usize::from(input.byte() % 12);
                input.bytes(length).iter().map(|byte| char::from(byte.max(&1) & 0x7F)).collect()
            }
            _ => input.pick(FORMATS).to_owned(),
        };
        let length = input.number(near);
        let offset = input.number(0);
        let node = Node { format, length, offset };
        above.push(place);
        let mut children = Vec::new();
        if above.len() < 8 {
            let count = node.children(input);
            for index in 0..count {
                children.push(node.child(input, arena, above, index));
            }
        }
        let dictionary = match input.byte() {
            224..=253 if above.len() < 8 => Some(Self::node(input, arena, above, 3, None)),
            254 => Some(above[0]),
            _ => None,
        };
        above.pop();
        let (schema, array) = (
            node.schema(input, arena, &children, dictionary),
            node.array(input, arena, &children, dictionary),
        );
        // SAFETY: both are in the arena, and looked at by nobody yet.
        unsafe {
            place.schema.write(schema);
            place.array.write(array);
        }
        place
    }
}

impl Node {
    fn parsed(&self) -> Option<Format<'_>> {
        Format::parse(&self.format).ok()
    }

    /// How many children to make: as many as the type has, or some other number.
    fn children(&self, input: &mut Input<'_>) -> usize {
        let right = self.parsed().and_then(|format| (0..4).find(|count| format.children().allows(*count)));
        match (right, input.byte()) {
            (Some(_), byte @ 0..=63) if self.format == "+s" => usize::from(byte % 4),
            (Some(count), 0..=239) => count,
            (_, byte) => usize::from(byte % 3),
        }
    }

    /// Offset and length together, if they are small enough for memory that is real.
    fn end(&self) -> Option<usize> {
        let end = usize::try_from(self.length.checked_add(self.offset)?).ok()?;
        let small = |number| (0..=MOST as i64).contains(&number);
        (small(self.length) && small(self.offset)).then_some(end)
    }

    fn child(&self, input: &mut Input<'_>, arena: &mut Arena, above: &mut Vec<Pair>, index: usize) -> Pair {
        if input.byte() == 255 {
            let back = usize::from(input.byte()) % above.len();
            return above[back];
        }
        let end = self.end().unwrap_or(3) as i64;
        let (near, format) = match self.format.as_str() {
            "+m" => (2 * end, Some("+s")),
            "+r" if index == 0 => (end.min(3), Some(input.pick(&["s", "i", "l"]))),
            "+w:2" => (2 * end, None),
            _ => (end, None),
        };
        Pair::node(input, arena, above, near, format)
    }

    fn schema(
        &self,
        input: &mut Input<'_>,
        arena: &mut Arena,
        children: &[Pair],
        dictionary: Option<Pair>,
    ) -> ArrowSchema {
        let mut text = |text: &str| {
            let bytes: Box<[u8]> = text.bytes().filter(|byte| *byte != 0).chain([0]).collect();
            arena.keep_all(bytes).cast_const().cast::<c_char>()
        };
        let format = text(&self.format);
        let name = match input.byte() {
            0..=63 => ptr::null(),
            64 => c"\xFF\xFE".as_ptr(),
            65 => text("\u{7f}\n\"ø"),
            _ => text("field"),
        };
        let metadata = match input.byte() {
            0 => arena.keep([-1_i32]).cast_const().cast(),
            1 => arena.keep([1_i32, -1]).cast_const().cast(),
            2 => arena.keep([1_i32, 0, 0]).cast_const().cast(),
            _ => ptr::null(),
        };
        let pointers = children.iter().map(|child| child.schema);
        let (children, n_children) = pointers_of(input, arena, pointers, children.len());
        ArrowSchema {
            format: if input.byte() == 255 { ptr::null() } else { format },
            name,
            metadata,
            flags: input.number(2),
            n_children,
            children,
            dictionary: dictionary
                .filter(|_| input.byte() != 255)
                .map_or(ptr::null_mut(), |pair| pair.schema),
            release: (input.byte() != 255).then_some(release_schema),
            private_data: ptr::null_mut(),
        }
    }

    fn array(
        &self,
        input: &mut Input<'_>,
        arena: &mut Arena,
        children: &[Pair],
        dictionary: Option<Pair>,
    ) -> ArrowArray {
        let buffers = self.buffers(input, arena);
        let count = buffers.len() as i64;
        let n_buffers = match input.byte() {
            255 => -1,
            254 => count - 1,
            _ => count,
        };
        let buffers = match input.byte() {
            255 => ptr::null_mut(),
            _ => arena.keep_all(buffers.into_boxed_slice()),
        };
        let pointers = children.iter().map(|child| child.array);
        let (children, n_children) = pointers_of(input, arena, pointers, children.len());
        ArrowArray {
            length: self.length,
            null_count: input.number(-1),
            offset: self.offset,
            n_buffers,
            n_children,
            buffers,
            children,
            dictionary: dictionary.filter(|_| input.byte() != 255).map_or(ptr::null_mut(), |pair| pair.array),
            release: (input.byte() != 255).then_some(release_array),
            private_data: ptr::null_mut(),
        }
    }

    /// As many buffers as the type has, each with the bytes that it needs, or null.
    fn buffers(&self, input: &mut Input<'_>, arena: &mut Arena) -> Vec<*const c_void> {
        let mut buffers = Vec::new();
        let Some(format) = self.parsed() else {
            return vec![ptr::null(); usize::from(input.byte() % 4)];
        };
        let mut last_offset = Some(0);
        for kind in format.buffers().kinds() {
            let elements = if *kind == BufferKind::Data { last_offset } else { self.end() };
            let bytes = elements.and_then(|elements| kind.bytes(elements)).filter(|bytes| *bytes < 1 << 16);
            let present = match kind {
                BufferKind::Validity => input.byte() < 128,
                _ => input.byte() < 250,
            };
            let (Some(bytes), true) = (bytes, present) else {
                buffers.push(ptr::null());
                continue;
            };
            let mut contents = self.contents(input, *kind, bytes);
            if input.byte() > 250 {
                contents = input.bytes(bytes);
            }
            last_offset = match *kind {
                BufferKind::Offsets32 => last(&contents, |bytes: [u8; 4]| i32::from_ne_bytes(bytes).into()),
                BufferKind::Offsets64 => last(&contents, i64::from_ne_bytes),
                _ => last_offset,
            };
            buffers.push(arena.buffer(contents));
        }
        if format.buffers().is_variadic() {
            let count = usize::from(input.byte() % 3);
            let mut sizes = Vec::new();
            for _ in 0..count {
                let size = input.number(40);
                let real = usize::try_from(size).ok().filter(|size| *size < 1 << 12 && input.byte() < 250);
                buffers.push(real.map_or(ptr::null(), |size| arena.buffer(vec![b'a'; size].into())));
                sizes.extend(size.to_ne_bytes());
            }
            let there = input.byte() < 250;
            buffers.push(if there { arena.buffer(sizes.into()) } else { ptr::null() });
        }
        if input.byte() == 255 {
            buffers.push(ptr::null());
        }
        buffers
    }

    /// Contents that have a chance to be valid: numbers that ascend for offsets and run ends, small ones otherwise.
    fn contents(&self, input: &mut Input<'_>, kind: BufferKind, bytes: usize) -> Box<[u8]> {
        let width = match kind {
            BufferKind::Offsets32 | BufferKind::Starts32 | BufferKind::Sizes32 => 4,
            BufferKind::Offsets64 | BufferKind::Starts64 | BufferKind::Sizes64 => 8,
            BufferKind::Fixed(width @ (2 | 4 | 8)) => width as usize,
            _ => return input.bytes(bytes),
        };
        let ascends = matches!(kind, BufferKind::Offsets32 | BufferKind::Offsets64 | BufferKind::Fixed(_));
        let mut number = 0_i64;
        let mut contents = Vec::new();
        while contents.len() < bytes {
            let step = input.number(1);
            number = if ascends { number.wrapping_add(step) } else { step };
            // The low bytes first on a little-endian machine, which fuzzes.
            contents.extend(&number.to_le_bytes()[..width]);
        }
        contents.truncate(bytes);
        contents.into()
    }
}

/// The last of the numbers, if it can be a size.
fn last<const N: usize>(contents: &[u8], read: impl Fn([u8; N]) -> i64) -> Option<usize> {
    let (_, last) = contents.split_last_chunk::<N>()?;
    usize::try_from(read(*last)).ok()
}

/// The pointers, some of them null, and a count that is theirs or less or nonsense.
fn pointers_of<T: 'static>(
    input: &mut Input<'_>,
    arena: &mut Arena,
    pointers: impl Iterator<Item = *mut T>,
    count: usize,
) -> (*mut *mut T, i64) {
    let pointers: Box<[*mut T]> =
        pointers.map(|pointer| if input.byte() == 255 { ptr::null_mut() } else { pointer }).collect();
    let count = count as i64;
    match input.byte() {
        255 => (ptr::null_mut(), input.number(count)),
        254 => (arena.keep_all(pointers), i64::MIN),
        253 => (arena.keep_all(pointers), (count - 1).max(0)),
        _ if count == 0 => (ptr::null_mut(), 0),
        _ => (arena.keep_all(pointers), count),
    }
}
