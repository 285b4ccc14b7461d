//! Where the crate and others judge differently, and why.

use crate::export::Tree;

/// What is said of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Refused,
    Accepted,
    Crashed,
}

/// A difference that is known.
#[derive(Debug)]
pub struct Explained {
    /// How the peer's name begins.
    pub peer: &'static str,
    /// Names of changes; `nothing` is that of none.
    pub change: &'static [&'static str],
    /// What the peer says, which is not what the crate says.
    pub verdict: Verdict,
    /// Of which arrays, and with which words.
    pub when: fn(&Tree, &str) -> bool,
    pub why: &'static str,
}

const fn explained(
    peer: &'static str,
    verdict: Verdict,
    change: &'static [&'static str],
    why: &'static str,
) -> Explained {
    Explained { peer, change, verdict, when: |_, _| true, why }
}

const ARROW: &str = "Arrow C++";
const NANOARROW: &str = "nanoarrow";

use Verdict::{Accepted, Crashed, Refused};

pub const EXPLAINED: &[Explained] = &[
    explained(
        ARROW,
        Refused,
        &["fields without a name"],
        "names may be null by the specification, but Arrow C++ wants one of every child",
    ),
    Explained {
        when: |_, message| message.contains("nested run-end encoded array"),
        ..explained(ARROW, Refused, &[], "Arrow C++ has no run-end encoded values of run-end encoded arrays")
    },
    Explained {
        when: |_, message| message.contains("View buffer size (bytes): 0 isn't large enough for length: 0"),
        ..explained(
            ARROW,
            Refused,
            &[],
            "a view array without elements but with an offset: Arrow C++ imports it without its buffer, and then misses it",
        )
    },
    Explained {
        when: |_, message| message.contains("null data pointer for a buffer with non-zero computed size"),
        ..explained(
            ARROW,
            Refused,
            &["no buffers without elements (C7)"],
            "of a view array without elements nobody reads the data buffers: only Arrow C++ minds that one is null whose \
             size is not 0",
        )
    },
    explained(
        ARROW,
        Accepted,
        &["a buffer where there are none"],
        "Arrow C++ does not count the buffers of null arrays",
    ),
    explained(
        ARROW,
        Accepted,
        &["nulls without end that are not counted"],
        "Arrow C++ replaces the null count of null arrays by the length",
    ),
    explained(
        ARROW,
        Accepted,
        &["a child shorter than its parent"],
        "Arrow C++ compares the child of a fixed-size list with the list's length alone, without the offset",
    ),
    explained(
        ARROW,
        Accepted,
        &["a data buffer of a negative size"],
        "Arrow C++ does not look at the size of a data buffer that no view is of",
    ),
    explained(ARROW, Accepted, &["a name that is not UTF-8"], "Arrow C++ takes names as bytes"),
    explained(
        ARROW,
        Accepted,
        &["a type id twice"],
        "Arrow C++ does not look for type ids that two children share",
    ),
    explained(
        ARROW,
        Accepted,
        &["nulls in a run-end encoded array"],
        "Arrow C++ replaces the null count of run-end encoded arrays",
    ),
    explained(
        ARROW,
        Accepted,
        &["null count of -2"],
        "Arrow C++ replaces the null counts of run-end encoded arrays and null arrays",
    ),
    explained(
        ARROW,
        Accepted,
        &["negative offset"],
        "Arrow C++ does not look at the sign of an offset, and reads what stands before the buffers",
    ),
    explained(
        ARROW,
        Crashed,
        &[
            "negative offset",
            "negative length",
            "null count of -2",
            "more nulls than elements",
            "offset beyond all numbers",
        ],
        "Arrow C++ believes these numbers while it imports: it ends the process over some types, maps first of all",
    ),
    explained(
        ARROW,
        Crashed,
        &[
            "nulls in the entries of a map",
            "nulls in the keys of a map",
            "nulls in the keys of a map, not counted",
        ],
        "Arrow C++ ends the process when it imports such a map",
    ),
    explained(
        ARROW,
        Crashed,
        &[
            "a format that is null",
            "a type with a child that is null",
            "a child that is null",
            "no buffer pointers",
            "no child pointers",
            "sizes of data buffers that are null",
        ],
        "Arrow C++ reads through pointers of the structs without looking whether they are null",
    ),
    Explained {
        when: |_, message| message.contains("Expected size > 0 for fixed size binary"),
        ..explained(NANOARROW, Refused, &[], "values of no bytes, `w:0`, are none to nanoarrow")
    },
    explained(
        NANOARROW,
        Refused,
        &["unknown null count without a bitmap (C24)"],
        "by the letter an unknown null count needs a bitmap; GDAL exports none, and Arrow C++ takes it",
    ),
    explained(
        NANOARROW,
        Accepted,
        &[
            "a null count that is not the bitmap's",
            "nulls without end that are not counted",
            "null count of -2",
            "more nulls than elements",
            "nulls in a union",
            "nulls in a run-end encoded array",
            "nulls in the entries of a map",
            "nulls in the keys of a map",
            "nulls in the keys of a map, not counted",
        ],
        "nanoarrow does not check null counts, but for run ends",
    ),
    explained(
        NANOARROW,
        Accepted,
        &["a text that is not UTF-8", "a viewed text that is not UTF-8", "a name that is not UTF-8"],
        "nanoarrow does not check UTF-8",
    ),
    explained(
        NANOARROW,
        Accepted,
        &[
            "a view of a negative size",
            "a view with something behind its value",
            "a view that begins otherwise than its data",
            "a view of a buffer that there is not",
            "a view of a buffer below 0",
            "a view beyond its data",
            "a view before its data",
            "a data buffer of a negative size",
            "a data buffer that is null",
            "sizes of data buffers that are null",
        ],
        "nanoarrow does not check views and their data buffers",
    ),
    explained(
        NANOARROW,
        Accepted,
        &["a union's offset beyond the child", "a union's offset that goes back"],
        "nanoarrow compares a union's offsets with the longest of the children, and lets one be its length; it does \
         not ask for an order",
    ),
    explained(
        NANOARROW,
        Accepted,
        &["a decimal without digits", "a type id twice"],
        "nanoarrow takes every precision, and type ids that two children share",
    ),
    explained(
        NANOARROW,
        Accepted,
        &["metadata of less than no pairs", "metadata with a key of less than no bytes"],
        "nanoarrow reads metadata only when it is asked for",
    ),
    explained(
        NANOARROW,
        Crashed,
        &[
            "a format that is null",
            "a type with a child that is null",
            "a child that is null",
            "a child that is released",
            "no buffer pointers",
            "no child pointers",
            "sizes of a list view that are null",
        ],
        "nanoarrow reads through pointers of the structs, and what released ones leave, without looking",
    ),
];
