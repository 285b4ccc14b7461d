//! The type of the batches.

use arrow_device_abi::SchemaNode;
use arrow_device_abi::raw::{ARROW_FLAG_DICTIONARY_ORDERED, ARROW_FLAG_MAP_KEYS_SORTED, ARROW_FLAG_NULLABLE};

type Node = SchemaNode<'static>;

const fn nested(name: &'static str, format: &'static str, children: &'static [Node]) -> Node {
    SchemaNode {
        format,
        name: Some(name),
        metadata: &[],
        flags: ARROW_FLAG_NULLABLE,
        children,
        dictionary: None,
    }
}

const fn field(name: &'static str, format: &'static str) -> Node {
    nested(name, format, &[])
}

const fn required(node: Node) -> Node {
    SchemaNode { flags: node.flags & !ARROW_FLAG_NULLABLE, ..node }
}

const fn flagged(flag: i64, node: Node) -> Node {
    SchemaNode { flags: node.flags | flag, ..node }
}

const fn encoded(indices: Node, values: &'static Node) -> Node {
    SchemaNode { dictionary: Some(values), ..indices }
}

const fn with_metadata(node: Node, metadata: &'static [(&'static [u8], &'static [u8])]) -> Node {
    SchemaNode { metadata, ..node }
}

const ITEM: &[Node] = &[field("item", "i")];
const ALTERNATIVES: &[Node] = &[field("number", "i"), field("text", "u")];
const WORDS: &Node = &required(field("", "u"));
const NUMBERS: &Node = &required(field("", "l"));
const TEXT_TO_NUMBER: &[Node] =
    &[required(nested("entries", "+s", &[required(field("key", "u")), field("value", "i")]))];
const NUMBER_TO_TEXT: &[Node] =
    &[required(nested("entries", "+s", &[required(field("key", "i")), field("value", "u")]))];
const LISTS_OF_WORDS: &[Node] =
    &[nested("item", "+s", &[nested("words", "+l", &[field("item", "vu")]), required(field("n", "l"))])];

/// A record batch: every layout, and every kind of parameter that a format string has.
pub const SCHEMA: Node = with_metadata(
    required(SchemaNode {
        name: None,
        ..nested(
            "",
            "+s",
            &[
                field("null", "n"),
                field("boolean", "b"),
                field("int8", "c"),
                field("uint8", "C"),
                field("int16", "s"),
                field("uint16", "S"),
                with_metadata(
                    field("int32", "i"),
                    &[
                        (b"unit", "µm".as_bytes()),
                        (b"", b"value of the empty key"),
                        (b"odd", b"zero\0inside"),
                    ],
                ),
                field("uint32", "I"),
                field("int64", "l"),
                field("uint64", "L"),
                field("half float", "e"),
                field("float", "f"),
                field("double", "g"),
                field("decimal32", "d:7,2,32"),
                field("decimal64", "d:15,3,64"),
                field("decimal128", "d:30,4"),
                field("decimal256", "d:60,1,256"),
                field("date32", "tdD"),
                field("date64", "tdm"),
                field("time32 s", "tts"),
                field("time32 ms", "ttm"),
                field("time64 us", "ttu"),
                field("time64 ns", "ttn"),
                field("timestamp", "tss:"),
                field("timestamp of a zone", "tsn:Europe/Copenhagen"),
                field("duration s", "tDs"),
                field("duration ns", "tDn"),
                field("months", "tiM"),
                field("days and ms", "tiD"),
                field("months, days and ns", "tin"),
                field("three bytes", "w:3"),
                field("binary", "z"),
                field("large binary", "Z"),
                field("string ø", "u"),
                field("large string", "U"),
                field("binary view", "vz"),
                field("string view", "vu"),
                nested("list", "+l", ITEM),
                nested("large list", "+L", ITEM),
                nested("list view", "+vl", ITEM),
                nested("large list view", "+vL", ITEM),
                nested("fixed-size list", "+w:2", ITEM),
                nested("struct", "+s", &[field("x", "i"), required(field("y", "u"))]),
                nested("struct without fields", "+s", &[]),
                nested("map", "+m", TEXT_TO_NUMBER),
                flagged(ARROW_FLAG_MAP_KEYS_SORTED, nested("map, sorted", "+m", NUMBER_TO_TEXT)),
                nested("sparse union", "+us:4,9", ALTERNATIVES),
                nested("dense union", "+ud:4,9", ALTERNATIVES),
                encoded(field("dictionary", "c"), WORDS),
                flagged(ARROW_FLAG_DICTIONARY_ORDERED, encoded(field("ordered", "I"), NUMBERS)),
                nested("runs", "+r", &[required(field("run_ends", "i")), field("values", "u")]),
                nested("runs, short ends", "+r", &[required(field("run_ends", "s")), field("values", "g")]),
                nested("lists of structs of lists", "+l", LISTS_OF_WORDS),
                with_metadata(
                    field("uuid", "w:16"),
                    &[(b"ARROW:extension:name", b"arrow.uuid"), (b"ARROW:extension:metadata", b"")],
                ),
                required(field("not null", "l")),
            ],
        )
    }),
    &[(b"origin", b"Rust")],
);
