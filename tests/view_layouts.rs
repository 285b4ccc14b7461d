//! Every layout of the columnar format through the views: formats, counts, buffers, and the values in them.

mod common;

use arrow_device_abi::raw::{
    ARROW_FLAG_DICTIONARY_ORDERED, ARROW_FLAG_MAP_KEYS_SORTED, ARROW_FLAG_NULLABLE, ArrowArray, ArrowSchema,
};
use arrow_device_abi::{ArrayView, OwnedArray, OwnedSchema, SchemaView};

use common::{Stub, array, schema};

/// A tree of both kinds. The buffers are static values of the types that the tests read them as.
struct Layout {
    schema: OwnedSchema,
    array: OwnedArray,
}

impl Layout {
    fn new(schema: Stub<ArrowSchema>, array: Stub<ArrowArray>) -> Self {
        Self { schema: schema.own(), array: array.own() }
    }

    fn array(&self) -> ArrayView<'_> {
        self.array.view().unwrap()
    }

    /// A line a node, depth first: format, name, `offset+length`, nulls, a letter for each buffer (`-` if null).
    fn outline(&self) -> String {
        let mut lines = Vec::new();
        walk(self.schema.view().unwrap(), self.array(), &mut lines);
        lines.join("\n")
    }
}

fn walk(schema: SchemaView<'_>, array: ArrayView<'_>, lines: &mut Vec<String>) {
    let nulls = array.null_count().map_or("?".into(), |nulls| nulls.to_string());
    let buffers: String =
        array.buffers().iter().map(|buffer| if buffer.is_null() { '-' } else { 'x' }).collect();
    let name = schema.name().unwrap().unwrap_or("_");
    let format = schema.format().unwrap();
    let (offset, length) = (array.offset(), array.length());
    lines.push(format!("{format} {name} {offset}+{length} nulls {nulls} [{buffers}]"));
    assert_eq!(schema.n_children(), array.n_children());
    for (schema, array) in schema.children().zip(array.children()) {
        walk(schema.unwrap(), array.unwrap(), lines);
    }
    match (schema.dictionary().unwrap(), array.dictionary().unwrap()) {
        (Some(schema), Some(array)) => walk(schema, array, lines),
        (None, None) => {}
        _ => panic!("only one side has a dictionary"),
    }
}

fn read<T: Copy>(array: &ArrayView<'_>, buffer: usize, count: usize) -> Vec<T> {
    // SAFETY: the buffers of this file are static values, and each test reads the type and number that it wrote.
    unsafe { array.buffer_as(buffer, count) }.unwrap().to_vec()
}

/// The values of a variable-size binary array with `i32` offsets.
fn texts(array: &ArrayView<'_>) -> Vec<String> {
    let offsets: Vec<i32> = read(array, 1, array.length() + 1);
    let bytes: Vec<u8> = read(array, 2, offsets[array.length()] as usize);
    let text = |range: &[i32]| String::from_utf8(bytes[range[0] as usize..range[1] as usize].to_vec());
    offsets.windows(2).map(|range| text(range).unwrap()).collect()
}

fn ints() -> Stub<ArrowArray> {
    array(3).no_buffer().buffer(&[7i32, 8, 9])
}

fn strings() -> Stub<ArrowArray> {
    array(2).no_buffer().buffer(&[0i32, 2, 3]).buffer(b"abc")
}

/// Null layout: no buffers, all elements null.
#[test]
fn null() {
    let layout = Layout::new(schema(c"n"), array(4).nulls(4));
    assert_eq!(layout.outline(), "n _ 0+4 nulls 4 []");
    assert!(layout.array().buffer(0).is_err());
}

/// Boolean: bits in both buffers.
#[test]
fn boolean() {
    let layout = Layout::new(
        schema(c"b").name(c"flag"),
        array(10).nulls(2).buffer(&[0b1110_1111u8, 0b01]).buffer(&[0b0101_0101u8, 0b10]),
    );
    assert_eq!(layout.outline(), "b flag 0+10 nulls 2 [xx]");
    assert_eq!(read::<u8>(&layout.array(), 1, 2), [0b0101_0101, 0b10]);
}

/// Fixed width, of 1, 4, 8 and 16 bytes; the offset is not applied to the buffers.
#[test]
fn fixed_width() {
    let bytes = Layout::new(schema(c"C"), array(2).no_buffer().buffer(&[1u8, 255]));
    assert_eq!(bytes.outline(), "C _ 0+2 nulls 0 [-x]");
    assert_eq!(read::<u8>(&bytes.array(), 1, 2), [1, 255]);

    let ints =
        Layout::new(schema(c"i"), array(2).offset(1).nulls(-1).buffer(&[0b101u8]).buffer(&[7i32, 8, 9]));
    assert_eq!(ints.outline(), "i _ 1+2 nulls ? [xx]");
    assert_eq!(read::<i32>(&ints.array(), 1, 3), [7, 8, 9]);

    let times = Layout::new(schema(c"tsu:UTC"), array(1).no_buffer().buffer(&[i64::MIN]));
    assert_eq!(times.outline(), "tsu:UTC _ 0+1 nulls 0 [-x]");
    assert_eq!(read::<i64>(&times.array(), 1, 1), [i64::MIN]);

    let decimals = Layout::new(schema(c"d:38,10"), array(1).no_buffer().buffer(&[-5i128]));
    assert_eq!(decimals.outline(), "d:38,10 _ 0+1 nulls 0 [-x]");
    assert_eq!(read::<i128>(&decimals.array(), 1, 1), [-5]);
}

/// Fixed-size binary: the width is in the format.
#[test]
fn fixed_size_binary() {
    let layout = Layout::new(schema(c"w:3"), array(2).no_buffer().buffer(b"abcdef"));
    assert_eq!(layout.outline(), "w:3 _ 0+2 nulls 0 [-x]");
    assert_eq!(read::<[u8; 3]>(&layout.array(), 1, 2), [*b"abc", *b"def"]);
}

/// Variable-size binary and strings: 32-bit offsets.
#[test]
fn strings_and_binary() {
    for format in [c"u", c"z"] {
        let layout = Layout::new(schema(format), strings());
        assert_eq!(layout.outline(), format!("{} _ 0+2 nulls 0 [-xx]", format.to_str().unwrap()));
        assert_eq!(texts(&layout.array()), ["ab", "c"]);
    }
}

/// Large strings and binary: 64-bit offsets.
#[test]
fn large_strings_and_binary() {
    for format in [c"U", c"Z"] {
        let layout = Layout::new(schema(format), array(2).no_buffer().buffer(&[0i64, 0, 3]).buffer(b"abc"));
        assert_eq!(layout.outline(), format!("{} _ 0+2 nulls 0 [-xx]", format.to_str().unwrap()));
        assert_eq!(read::<i64>(&layout.array(), 1, 3), [0, 0, 3]);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct View {
    length: i32,
    prefix: [u8; 4],
    buffer: i32,
    offset: i32,
}

/// C25: views with no, one and two variadic data buffers; the sizes come last.
#[test]
fn string_and_binary_views() {
    const SHORT: View = View { length: 2, prefix: *b"ab\0\0", buffer: 0, offset: 0 };
    const LONG: View = View { length: 14, prefix: *b"cdef", buffer: 1, offset: 2 };

    // Producers without data buffers leave the sizes null or not.
    for stub in [
        array(1).no_buffer().buffer(&[SHORT]).no_buffer(),
        array(1).no_buffer().buffer(&[SHORT]).buffer(&[0i64; 0]),
    ] {
        let layout = Layout::new(schema(c"vu"), stub);
        let array = layout.array();
        assert_eq!(array.buffers().len(), 3);
        let buffers = array.binary_view_buffers().unwrap();
        assert!(buffers.validity.is_null());
        assert_eq!(buffers.views, array.buffer(1).unwrap());
        assert!(buffers.data.is_empty());
        assert_eq!(buffers.sizes, array.buffer(2).unwrap());
        assert_eq!(read::<View>(&array, 1, 1), [SHORT]);
    }

    let layout = Layout::new(
        schema(c"vz"),
        array(2)
            .nulls(1)
            .buffer(&[0b01u8])
            .buffer(&[LONG, SHORT])
            .no_buffer()
            .buffer(b"__cdefghijklmnop")
            .buffer(&[0i64, 16]),
    );
    assert_eq!(layout.outline(), "vz _ 0+2 nulls 1 [xx-xx]");
    let array = layout.array();
    let buffers = array.binary_view_buffers().unwrap();
    assert_eq!(buffers.validity, array.buffer(0).unwrap());
    assert_eq!(buffers.data, &array.buffers()[2..4]);
    assert!(buffers.data[0].is_null(), "a variadic buffer without bytes may be null (B7)");
    assert_eq!(buffers.sizes, array.buffer(4).unwrap());
    assert_eq!(read::<i64>(&array, 4, buffers.data.len()), [0, 16]);
    assert_eq!(&read::<u8>(&array, 3, 16)[LONG.offset as usize..], b"cdefghijklmnop");
}

/// Lists: 32-bit or 64-bit offsets into one child.
#[test]
fn lists() {
    let child = || schema(c"i").name(c"item").flags(ARROW_FLAG_NULLABLE);
    let list =
        Layout::new(schema(c"+l").child(child()), array(2).no_buffer().buffer(&[0i32, 1, 3]).child(ints()));
    assert_eq!(list.outline(), "+l _ 0+2 nulls 0 [-x]\ni item 0+3 nulls 0 [-x]");
    assert_eq!(read::<i32>(&list.array(), 1, 3), [0, 1, 3]);
    assert_eq!(read::<i32>(&list.array().child(0).unwrap(), 1, 3), [7, 8, 9]);

    let large =
        Layout::new(schema(c"+L").child(child()), array(2).no_buffer().buffer(&[0i64, 1, 3]).child(ints()));
    assert_eq!(large.outline(), "+L _ 0+2 nulls 0 [-x]\ni item 0+3 nulls 0 [-x]");
    assert_eq!(read::<i64>(&large.array(), 1, 3), [0, 1, 3]);
}

/// List views: offsets and sizes, in any order.
#[test]
fn list_views() {
    let view = Layout::new(
        schema(c"+vl").child(schema(c"i").name(c"item")),
        array(2).no_buffer().buffer(&[1i32, 0]).buffer(&[2i32, 3]).child(ints()),
    );
    assert_eq!(view.outline(), "+vl _ 0+2 nulls 0 [-xx]\ni item 0+3 nulls 0 [-x]");
    assert_eq!(
        (read::<i32>(&view.array(), 1, 2), read::<i32>(&view.array(), 2, 2)),
        (vec![1, 0], vec![2, 3])
    );

    let large = Layout::new(
        schema(c"+vL").child(schema(c"i").name(c"item")),
        array(1).no_buffer().buffer(&[1i64]).buffer(&[2i64]).child(ints()),
    );
    assert_eq!(large.outline(), "+vL _ 0+1 nulls 0 [-xx]\ni item 0+3 nulls 0 [-x]");
    assert_eq!(read::<i64>(&large.array(), 2, 1), [2]);
}

/// Fixed-size lists: no offsets, the size is in the format.
#[test]
fn fixed_size_lists() {
    let layout =
        Layout::new(schema(c"+w:3").child(schema(c"i").name(c"item")), array(1).no_buffer().child(ints()));
    assert_eq!(layout.outline(), "+w:3 _ 0+1 nulls 0 [-]\ni item 0+3 nulls 0 [-x]");
}

/// Structs: one buffer, any number of children; the parent's offset is not applied to them (C26).
#[test]
fn structs() {
    let layout = Layout::new(
        schema(c"+s").child(schema(c"i").name(c"a")).child(schema(c"u").name(c"")),
        array(1).offset(1).buffer(&[0b11u8]).child(ints()).child(strings()),
    );
    assert_eq!(layout.outline(), "+s _ 1+1 nulls 0 [x]\ni a 0+3 nulls 0 [-x]\nu  0+2 nulls 0 [-xx]");
    let children: Vec<_> = layout.array().children().map(|child| child.unwrap().length()).collect();
    assert_eq!(children, [3, 2]);
    assert_eq!(texts(&layout.array().child(1).unwrap()), ["ab", "c"]);
}

/// Maps: lists of key-value structs.
#[test]
fn maps() {
    let entries =
        schema(c"+s").name(c"entries").child(schema(c"u").name(c"key")).child(schema(c"i").name(c"value"));
    let layout = Layout::new(
        schema(c"+m").flags(ARROW_FLAG_MAP_KEYS_SORTED).child(entries),
        array(1)
            .no_buffer()
            .buffer(&[0i32, 2])
            .child(array(2).no_buffer().child(strings()).child(array(2).no_buffer().buffer(&[1i32, 2]))),
    );
    assert_eq!(
        layout.outline(),
        "+m _ 0+1 nulls 0 [-x]\n+s entries 0+2 nulls 0 [-]\nu key 0+2 nulls 0 [-xx]\ni value 0+2 nulls 0 [-x]"
    );
    let view = layout.schema.view().unwrap();
    assert!(view.is_map_keys_sorted() && !view.is_nullable() && !view.is_dictionary_ordered());
    assert_eq!(texts(&layout.array().child(0).unwrap().child(0).unwrap()), ["ab", "c"]);
}

/// Unions: no validity bitmap; type ids, and offsets if dense.
#[test]
fn unions() {
    let sparse = Layout::new(
        schema(c"+us:5,9").child(schema(c"i").name(c"a")).child(schema(c"n").name(c"b")),
        array(3).buffer(&[5i8, 9, 5]).child(ints()).child(array(3).nulls(3)),
    );
    assert_eq!(sparse.outline(), "+us:5,9 _ 0+3 nulls 0 [x]\ni a 0+3 nulls 0 [-x]\nn b 0+3 nulls 3 []");
    assert_eq!(read::<i8>(&sparse.array(), 0, 3), [5, 9, 5]);

    let dense = Layout::new(
        schema(c"+ud:0,1").child(schema(c"i")).child(schema(c"u")),
        array(4).buffer(&[0i8, 1, 1, 0]).buffer(&[0i32, 0, 1, 2]).child(ints()).child(strings()),
    );
    assert_eq!(dense.outline(), "+ud:0,1 _ 0+4 nulls 0 [xx]\ni _ 0+3 nulls 0 [-x]\nu _ 0+2 nulls 0 [-xx]");
    assert_eq!(read::<i32>(&dense.array(), 1, 4), [0, 0, 1, 2]);
}

/// Dictionaries: the indices' format, the values beside.
#[test]
fn dictionaries() {
    let layout = Layout::new(
        schema(c"c").name(c"kind").flags(ARROW_FLAG_DICTIONARY_ORDERED).dictionary(schema(c"u")),
        array(3).nulls(1).buffer(&[0b011u8]).buffer(&[1i8, 0, 0]).dictionary(strings()),
    );
    assert_eq!(layout.outline(), "c kind 0+3 nulls 1 [xx]\nu _ 0+2 nulls 0 [-xx]");
    assert!(layout.schema.view().unwrap().is_dictionary_ordered());
    let values = layout.array().dictionary().unwrap().unwrap();
    assert_eq!(texts(&values), ["ab", "c"]);
    assert!(values.dictionary().unwrap().is_none());
}

/// Run-end encoded: no buffers, run ends and values as children.
#[test]
fn run_end_encoded() {
    let layout = Layout::new(
        schema(c"+r").child(schema(c"i").name(c"run_ends")).child(schema(c"u").name(c"values")),
        array(5).offset(1).child(array(2).no_buffer().buffer(&[4i32, 6])).child(strings()),
    );
    assert_eq!(
        layout.outline(),
        "+r _ 1+5 nulls 0 []\ni run_ends 0+2 nulls 0 [-x]\nu values 0+2 nulls 0 [-xx]"
    );
    assert_eq!(read::<i32>(&layout.array().child(0).unwrap(), 1, 2), [4, 6]);
}

/// Layouts within layouts: depth first, each level with its own counts.
#[test]
fn nested() {
    let inner = schema(c"+r").child(schema(c"s")).child(schema(c"+l").child(schema(c"i")));
    let layout = Layout::new(
        schema(c"+L").child(schema(c"C").dictionary(schema(c"+s").child(inner))),
        array(1).no_buffer().buffer(&[0i64, 2]).child(
            array(2).no_buffer().buffer(&[0u8, 0]).dictionary(
                array(1).no_buffer().child(
                    array(1)
                        .child(array(1).no_buffer().buffer(&[1i16]))
                        .child(array(1).no_buffer().buffer(&[0i32, 3]).child(ints())),
                ),
            ),
        ),
    );
    assert_eq!(
        layout.outline(),
        "+L _ 0+1 nulls 0 [-x]\nC _ 0+2 nulls 0 [-x]\n+s _ 0+1 nulls 0 [-]\n+r _ 0+1 nulls 0 []\n\
         s _ 0+1 nulls 0 [-x]\n+l _ 0+1 nulls 0 [-x]\ni _ 0+3 nulls 0 [-x]"
    );
}
