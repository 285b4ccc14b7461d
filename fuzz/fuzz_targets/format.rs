//! Format strings: what is read is printed as it stood, or as what reads the same.
#![no_main]

use arrow_device_abi::format::Format;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

/// For the run that has to find something.
static SPOILS: LazyLock<bool> = LazyLock::new(|| std::env::var_os("FUZZ_SPOIL").is_some());

fn read_too_far(text: &str) {
    let copy: Box<[u8]> = text.bytes().collect();
    // SAFETY: none: this is a byte behind the last, which the sanitizer has to see.
    std::hint::black_box(unsafe { copy.as_ptr().add(copy.len()).read() });
}

fuzz_target!(|text: &str| {
    let Ok(format) = Format::parse(text) else {
        return;
    };
    let printed = format.to_string();
    assert!(printed == text || text.strip_suffix(",128") == Some(&printed), "{text} {printed}");
    assert_eq!(Format::parse(&printed), Ok(format));
    let buffers = format.buffers();
    assert!(buffers.allows(buffers.kinds().len() + usize::from(buffers.is_variadic())));
    for kind in buffers.kinds() {
        assert!(kind.bytes(1) >= kind.bytes(0));
        let _ = kind.bytes(usize::MAX);
    }
    let children = format.children();
    assert!((0..=128).any(|count| children.allows(count)));
    if *SPOILS {
        read_too_far(text);
    }
});
