//! A proof that cannot fail proves nothing. Here the mirror, or the bindings that stand for C's header, are made
//! wrong in one place at a time, and `src/raw/layout.rs` has to refuse each, by the rule that is there for it.
//!
//! A mutation that adds or takes a field also changes what else names it, so that nothing but the proof is in the
//! way: an error anywhere else fails the test.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use arrow_device_abi_support::compile::{CompileError, cargo, errors, fresh_dir, write};

const DATA: &str = "data.rs";
const STREAM: &str = "stream.rs";
const DEVICE: &str = "device.rs";
const ASYNC: &str = "async_stream.rs";
/// C's side.
const HEADER: &str = "bindings.rs";
const PROOF: &str = "layout.rs";

const MIRROR: [&str; 7] = ["mod.rs", DATA, STREAM, DEVICE, ASYNC, HEADER, PROOF];

struct Mutation {
    name: &'static str,
    /// File, text that stands in it exactly once, and what is put in its place.
    edits: &'static [(&'static str, &'static str, &'static str)],
    /// Parts of the error that refuses it, all in one error of `layout.rs`.
    refused_by: &'static [&'static str],
}

macro_rules! mutations {
    ($($name:literal: $($file:ident $from:literal => $to:literal),+; refused by $($part:expr),+;)+) => {
        &[$(Mutation { name: $name, edits: &[$(($file, $from, $to)),+], refused_by: &[$($part),+] }),+]
    };
}

/// A pattern without `..` does not name every field. (Within a macro, rustc takes the others for inaccessible.)
const A_FIELD_MORE: &str = "error: pattern requires `..` due to inaccessible fields";
/// No type of C stands for this one.
const NO_MIRROR: &str = "Mirror` is not satisfied";
/// `static_assertions` tells a trait that must not be implemented by an ambiguity.
const IMPLEMENTED: &str = "AmbiguousIfImpl";

const MUTATIONS: &[Mutation] = mutations! {
    // A field too few, too many, under another name or in another place.
    "reserved_gone":
        DEVICE "pub reserved: [i64; 3]," => "",
        DEVICE "reserved: [0; 3]," => "";
        refused by "E0026", "does not have a field named `reserved`";
    "reserved_gone_in_header":
        HEADER "pub reserved: [i64; 3usize]," => "";
        refused by "E0026", "does not have a field named `reserved`";
    "trailing_field":
        DEVICE "pub reserved: [i64; 3]," => "pub reserved: [i64; 3],\npub version: i64,",
        DEVICE "reserved: [0; 3]," => "reserved: [0; 3],\nversion: 0,";
        refused by A_FIELD_MORE;
    "trailing_field_in_header":
        HEADER "pub reserved: [i64; 3usize]," => "pub reserved: [i64; 3usize],\npub version: i64,";
        refused by A_FIELD_MORE;
    // The page's form: 48 bytes instead of 40.
    "x1_release_in_async_producer":
        ASYNC "pub cancel: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>," =>
            "pub cancel: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>,
    pub release: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>,";
        refused by A_FIELD_MORE;
    "x1_release_in_header":
        HEADER "pub struct ArrowAsyncProducer {\n" => "pub struct ArrowAsyncProducer {
    pub release: ::core::option::Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>,\n";
        refused by A_FIELD_MORE;
    // Padding hides the field from every size and offset.
    "field_in_the_padding":
        DEVICE "pub device_type: ArrowDeviceType," => "pub device_type: ArrowDeviceType,\npub flags: i32,",
        DEVICE "device_type: ArrowDeviceType(0)," => "device_type: ArrowDeviceType(0),\nflags: 0,";
        refused by A_FIELD_MORE;
    "field_renamed":
        DATA "pub null_count: i64," => "pub nulls: i64,",
        DATA "null_count: 0," => "nulls: 0,";
        refused by "E0026", "does not have a field named `null_count`";
    "id_and_type_swapped":
        DEVICE "pub device_id: i64,\n    pub device_type: ArrowDeviceType," =>
            "pub device_type: ArrowDeviceType,\n    pub device_id: i64,";
        refused by "E0080", "offset of ArrowDeviceArray::device_id differs from the C header's";
    "id_and_type_swapped_in_header":
        HEADER "pub device_id: i64,\n    pub device_type: ArrowDeviceType," =>
            "pub device_type: ArrowDeviceType,\n    pub device_id: i64,";
        refused by "E0080", "offset of ArrowDeviceArray::device_id differs from the C header's";
    // Same type, same size: only the offset tells them apart.
    "name_and_metadata_swapped":
        DATA "pub name: *const c_char,\n    pub metadata: *const c_char," =>
            "pub metadata: *const c_char,\n    pub name: *const c_char,";
        refused by "E0080", "offset of ArrowSchema::name differs from the C header's";

    // A field of another type, mostly one of the same size.
    "reserved_of_isize":
        DEVICE "reserved: [i64; 3]" => "reserved: [isize; 3]";
        refused by "E0277", "`isize: ", NO_MIRROR;
    "reserved_two":
        DEVICE "reserved: [i64; 3]" => "reserved: [i64; 2]",
        DEVICE "reserved: [0; 3]" => "reserved: [0; 2]";
        refused by "E0308", "expected an array with a size of 2, found one with a size of 3";
    "device_type_unsigned":
        DEVICE "pub device_type: ArrowDeviceType," => "pub device_type: u32,",
        DEVICE "device_type: ArrowDeviceType(0)," => "device_type: 0,";
        refused by "E0277", "`u32: ", NO_MIRROR;
    "device_type_unsigned_newtype":
        DEVICE "pub struct ArrowDeviceType(pub i32);" => "pub struct ArrowDeviceType(pub u32);";
        refused by "E0308", "expected `&i32`, found `&u32`";
    "device_type_unsigned_in_header":
        HEADER "pub type ArrowDeviceType = i32;" => "pub type ArrowDeviceType = u32;";
        refused by "E0308", "expected `&i32`, found `&u32`";
    "device_type_wide":
        DEVICE "pub struct ArrowDeviceType(pub i32);" => "pub struct ArrowDeviceType(pub i64);";
        refused by "E0080", "ArrowDeviceType is not an int32_t";
    "flags_unsigned":
        DATA "pub flags: i64," => "pub flags: u64,";
        refused by "E0277", "`u64: ", NO_MIRROR;
    "count_of_usize":
        DATA "pub n_buffers: i64," => "pub n_buffers: usize,";
        refused by "E0277", "`usize: ", NO_MIRROR;
    "format_of_bytes":
        DATA "pub format: *const c_char," => "pub format: *const core::ffi::c_uchar,";
        refused by "E0277", "`u8: ", NO_MIRROR;
    "buffers_mutable":
        DATA "pub buffers: *mut *const c_void," => "pub buffers: *mut *mut c_void,";
        refused by "E0308", "expected reference `&*mut *mut c_void`", "found reference `&*mut *const c_void`";
    "dictionary_constant":
        DATA "pub dictionary: *mut ArrowArray," => "pub dictionary: *const ArrowArray,";
        refused by "E0308", "expected reference `&*const c::ArrowArray`", "found reference `&*mut c::ArrowArray`";
    "out_of_nothing":
        STREAM "Option<unsafe extern \"C\" fn(*mut ArrowDeviceArrayStream, out: *mut ArrowDeviceArray) -> c_int>," =>
            "Option<unsafe extern \"C\" fn(*mut ArrowDeviceArrayStream, out: *mut ()) -> c_int>,";
        refused by "E0308", "fn(_, *mut ()) -> _>`", "fn(_, *mut c::ArrowDeviceArray) -> _>`";
    "x3_producer_by_value":
        ASYNC "pub producer: *mut ArrowAsyncProducer," => "pub producer: ArrowAsyncProducer,",
        ASYNC "producer: ptr::null_mut()," => "producer: ArrowAsyncProducer {
                device_type: ArrowDeviceType(0),
                request: None,
                cancel: None,
                additional_metadata: ptr::null(),
                private_data: ptr::null_mut(),
            },";
        refused by "E0308", "expected `&ArrowAsyncProducer`, found `&*mut ArrowAsyncProducer`";

    // Callbacks.
    "release_returns_c_void":
        DATA "fn(*mut ArrowArray)>" => "fn(*mut ArrowArray) -> c_void>";
        refused by "E0308", "fn(_) -> c_void>`", "fn(_) -> ()>`";
    "release_safe":
        DATA "Option<unsafe extern \"C\" fn(*mut ArrowArray)>" => "Option<extern \"C\" fn(*mut ArrowArray)>";
        refused by "E0277", "`Option<extern \"C\" fn(*mut ", NO_MIRROR;
    "release_of_rust":
        DATA "Option<unsafe extern \"C\" fn(*mut ArrowArray)>" => "Option<unsafe fn(*mut ArrowArray)>";
        refused by "E0277", "`Option<unsafe fn(*mut ", NO_MIRROR;
    "release_of_system":
        DATA "Option<unsafe extern \"C\" fn(*mut ArrowArray)>" =>
            "Option<unsafe extern \"system\" fn(*mut ArrowArray)>";
        refused by "E0277", "`Option<unsafe extern \"system\" fn(*mut ", NO_MIRROR;
    "release_of_a_constant":
        DATA "fn(*mut ArrowSchema)>" => "fn(*const ArrowSchema)>";
        refused by "E0308", "fn(*const c::ArrowSchema)>`", "fn(*mut c::ArrowSchema)>`";
    "callback_never_null":
        ASYNC "Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int>," =>
            "unsafe extern \"C\" fn(self_: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int,";
        refused by "E0277", "`unsafe extern \"C\" fn(", "-> i32: ", NO_MIRROR;
    "error_text_mutable":
        STREAM "fn(*mut ArrowArrayStream) -> *const c_char" => "fn(*mut ArrowArrayStream) -> *mut c_char";
        refused by "E0308", "fn(_) -> *mut ", "fn(_) -> *const ";
    "return_code_wide":
        STREAM "fn(*mut ArrowArrayStream, out: *mut ArrowArray) -> c_int" =>
            "fn(*mut ArrowArrayStream, out: *mut ArrowArray) -> i64";
        refused by "E0308", "fn(_, _) -> i64>`", "fn(_, _) -> i32>`";
    "return_code_lost":
        STREAM "fn(*mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int" =>
            "fn(*mut ArrowArrayStream, out: *mut ArrowSchema)";
        refused by "E0308", "fn(_, _) -> ()>`", "fn(_, _) -> i32>`";
    "array_for_device_array":
        STREAM "fn(*mut ArrowDeviceArrayStream, out: *mut ArrowDeviceArray) -> c_int" =>
            "fn(*mut ArrowDeviceArrayStream, out: *mut ArrowArray) -> c_int";
        refused by "E0308", "fn(_, *mut c::ArrowArray) -> _>`", "fn(_, *mut c::ArrowDeviceArray) -> _>`";
    "argument_gone":
        ASYNC "task: *mut ArrowAsyncTask,\n            metadata: *const c_char," =>
            "task: *mut ArrowAsyncTask,";
        refused by "E0308", "fn(*mut c::ArrowAsyncDeviceStreamHandler, *mut c::ArrowAsyncTask) -> _>`";
    "all_arguments_gone":
        ASYNC "pub cancel: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>," =>
            "pub cancel: Option<unsafe extern \"C\" fn()>,";
        refused by "E0277", "`Option<unsafe extern \"C\" fn()>: ", NO_MIRROR;
    "argument_more":
        ASYNC "pub cancel: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>," =>
            "pub cancel: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer, why: c_int)>,";
        refused by "E0308", "fn(*mut c::ArrowAsyncProducer, i32)>`", "fn(*mut c::ArrowAsyncProducer)>`";
    "x2_request_unsigned":
        ASYNC "fn(self_: *mut ArrowAsyncProducer, n: i64)" => "fn(self_: *mut ArrowAsyncProducer, n: u64)";
        refused by "E0277", "`u64: ", NO_MIRROR;
    "x2_request_unsigned_in_header":
        HEADER "fn(self_: *mut ArrowAsyncProducer, n: i64)" => "fn(self_: *mut ArrowAsyncProducer, n: u64)";
        refused by "E0308", "fn(_, i64)>`", "fn(_, u64)>`";
    "x5_on_error_self_by_value":
        ASYNC "self_: *mut ArrowAsyncDeviceStreamHandler,\n            code: c_int," =>
            "self_: ArrowAsyncDeviceStreamHandler,\n            code: c_int,";
        refused by "E0308", "fn(c::ArrowAsyncDeviceStreamHandler, _, _, _)>`";
    "x6_on_schema_of_producer":
        ASYNC "self_: *mut ArrowAsyncDeviceStreamHandler,\n            stream_schema: *mut ArrowSchema," =>
            "self_: *mut ArrowAsyncProducer,\n            stream_schema: *mut ArrowSchema,";
        refused by "E0308", "fn(*mut c::ArrowAsyncProducer, _) -> _>`";

    // Constants.
    "device_constant":
        DEVICE "ARROW_DEVICE_ROCM ROCM = 10;" => "ARROW_DEVICE_ROCM ROCM = 5;";
        refused by "E0080", "ARROW_DEVICE_ROCM differs from the C header's";
    "device_constant_in_header":
        HEADER "ARROW_DEVICE_CUDA_HOST: i32 = 3;" => "ARROW_DEVICE_CUDA_HOST: i32 = 5;";
        refused by "E0080", "ARROW_DEVICE_CUDA_HOST differs from the C header's";
    "device_constant_gone_in_header":
        HEADER "pub const ARROW_DEVICE_HEXAGON: i32 = 16;\n" => "";
        refused by "cannot find value `ARROW_DEVICE_HEXAGON` in module `c`";
    "flag":
        DATA "ARROW_FLAG_MAP_KEYS_SORTED = 4;" => "ARROW_FLAG_MAP_KEYS_SORTED = 3;";
        refused by "E0080", "ARROW_FLAG_MAP_KEYS_SORTED differs from the C header's";
    "statistics_key":
        DATA "c\"ARROW:max_value:approximate\"" => "c\"ARROW:max_value:approx\"";
        refused by "E0080", "ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE differs from the C header's";

    // The struct as a whole.
    "struct_gone_in_header":
        HEADER "pub struct ArrowAsyncTask {" => "pub struct ArrowArrayTask {",
        HEADER "self_: *mut ArrowAsyncTask," => "self_: *mut ArrowArrayTask,",
        HEADER "task: *mut ArrowAsyncTask," => "task: *mut ArrowArrayTask,";
        refused by "cannot find type `ArrowAsyncTask` in module `c`";
    // Rust happens to lay these two out as C does, today.
    "layout_of_rust":
        STREAM "#[repr(C)]\n#[derive(Debug)]\npub struct ArrowArrayStream " =>
            "#[derive(Debug)]\npub struct ArrowArrayStream ";
        refused by "ArrowArrayStream`, which is not FFI-safe";
    "layout_of_rust_newtype":
        DEVICE "#[repr(transparent)]\n" => "";
        refused by "ArrowDeviceType`, which is not FFI-safe";
    "packed":
        DATA "#[repr(C)]\n#[derive(Debug)]\npub struct ArrowSchema " =>
            "#[repr(C, packed(2))]\npub struct ArrowSchema ",
        DATA "        self.release.is_none()\n    }\n}\n\n#[repr(C)]" =>
            "        matches!(self.release, None)\n    }\n}\n\n#[repr(C)]";
        refused by "E0793", "reference to ";
    "alignment":
        ASYNC "#[repr(C)]\n#[derive(Debug)]\npub struct ArrowAsyncDeviceStreamHandler " => "#[repr(C)]
#[cfg_attr(target_pointer_width = \"64\", repr(align(16)))]
#[cfg_attr(target_pointer_width = \"32\", repr(align(8)))]
#[derive(Debug)]
pub struct ArrowAsyncDeviceStreamHandler ";
        refused by "E0080", "alignment of ArrowAsyncDeviceStreamHandler differs from the C header's";
    "size":
        DEVICE "#[repr(C)]\n#[derive(Debug)]\npub struct ArrowDeviceArray " =>
            "#[repr(C, align(256))]\n#[derive(Debug)]\npub struct ArrowDeviceArray ";
        refused by "E0080", "size of ArrowDeviceArray differs from the C header's";
    "copied":
        DATA "#[derive(Debug)]\npub struct ArrowArray " =>
            "#[derive(Debug, Clone, Copy)]\npub struct ArrowArray ";
        refused by "data::ArrowArray: ", IMPLEMENTED;
    "cloned":
        ASYNC "#[derive(Debug)]\npub struct ArrowAsyncTask " =>
            "#[derive(Debug, Clone)]\npub struct ArrowAsyncTask ";
        refused by "async_stream::ArrowAsyncTask: ", IMPLEMENTED;
    "sent":
        STREAM "impl ArrowArrayStream {\n" =>
            "unsafe impl Send for ArrowArrayStream {}\nimpl ArrowArrayStream {\n";
        refused by "stream::ArrowArrayStream: ", IMPLEMENTED;
    "shared":
        STREAM "impl ArrowDeviceArrayStream {\n" =>
            "unsafe impl Sync for ArrowDeviceArrayStream {}\nimpl ArrowDeviceArrayStream {\n";
        refused by "stream::ArrowDeviceArrayStream: ", IMPLEMENTED;
    "dropped":
        DATA "impl ArrowSchema {\n" =>
            "impl Drop for ArrowSchema {\n    fn drop(&mut self) {}\n}\nimpl ArrowSchema {\n";
        refused by "E0080", "ArrowSchema must not drop";

    // Both sides wrong in the same way: the numbers of the data model.
    "both_sides_reserved_two":
        DEVICE "reserved: [i64; 3]" => "reserved: [i64; 2]",
        DEVICE "reserved: [0; 3]" => "reserved: [0; 2]",
        HEADER "reserved: [i64; 3usize]" => "reserved: [i64; 2usize]";
        refused by "E0080", "size of ArrowDeviceArray is not the data model's";
    "both_sides_id_and_type_swapped":
        DEVICE "pub device_id: i64,\n    pub device_type: ArrowDeviceType," =>
            "pub device_type: ArrowDeviceType,\n    pub device_id: i64,",
        HEADER "pub device_id: i64,\n    pub device_type: ArrowDeviceType," =>
            "pub device_type: ArrowDeviceType,\n    pub device_id: i64,";
        refused by "E0080", "offset of ArrowDeviceArray::device_id is not the data model's";
    "both_sides_x1_release":
        ASYNC "pub cancel: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>," =>
            "pub cancel: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>,
    pub release: Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>,",
        HEADER "pub additional_metadata: *const ::core::ffi::c_char," =>
            "pub release: ::core::option::Option<unsafe extern \"C\" fn(self_: *mut ArrowAsyncProducer)>,
    pub additional_metadata: *const ::core::ffi::c_char,";
        refused by "E0080", "size of ArrowAsyncProducer is not the data model's";
    "both_sides_of_isize":
        DEVICE "reserved: [i64; 3]" => "reserved: [isize; 3]",
        HEADER "reserved: [i64; 3usize]" => "reserved: [isize; 3usize]";
        refused by "E0277", "`isize: ", NO_MIRROR;
};

/// A crate of nothing but the mirror and its proof.
fn crate_of_mirror(root: &Path, name: &str, edits: &[(&str, &str, &str)]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/raw");
    let dir = root.join(name);
    write(
        &dir.join("Cargo.toml"),
        &format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\nstatic_assertions = \"1.1\"\n"
        ),
    );
    // Warnings are of no interest, denied by the environment or not.
    write(&dir.join("src/lib.rs"), "#![no_std]\n#![allow(warnings)]\npub mod raw;\n");
    for file in MIRROR {
        let text = fs::read_to_string(source.join(file)).expect("a file of the mirror");
        // Without its comments: an edit need not know what stands between two fields.
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let mut text: String = code.flat_map(|line| [line, "\n"]).collect();
        for (_, from, to) in edits.iter().filter(|edit| edit.0 == file) {
            assert_eq!(text.matches(from).count(), 1, "{name}: `{from}` has to stand in {file} once");
            text = text.replace(from, to);
        }
        write(&dir.join("src/raw").join(file), &text);
    }
}

#[test]
fn every_mutation_is_refused_by_its_rule() {
    let root = fresh_dir(env!("CARGO_TARGET_TMPDIR"), "mutations");
    write(
        &root.join("Cargo.toml"),
        "[workspace]\nmembers = [\"*\"]\nexclude = [\"target\"]\nresolver = \"2\"\n",
    );
    // So that no version of anything has to be looked up.
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock"), root.join("Cargo.lock"))
        .expect("Cargo.lock");
    crate_of_mirror(&root, "control", &[]);
    for mutation in MUTATIONS {
        crate_of_mirror(&root, mutation.name, mutation.edits);
    }

    let check = |arguments: &[&str]| {
        let mut cargo = cargo(&root, "check");
        let output = cargo.args(["--target-dir", "target"]).args(arguments).output().expect("cargo");
        (output.status.success(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (success, output) = check(&["--package", "control"]);
    assert!(success, "the mirror as it is does not compile:\n{output}");
    let (_, output) = check(&["--workspace", "--keep-going"]);

    let errors = errors(&output);
    let mut failures = String::new();
    for mutation in MUTATIONS {
        let (proof, elsewhere): (Vec<&CompileError>, Vec<_>) = errors
            .iter()
            .filter(|error| error.file.starts_with(&format!("{}/", mutation.name)))
            .partition(|error| error.text.contains(&format!("/src/raw/{PROOF}:")));
        let refused =
            proof.iter().any(|error| mutation.refused_by.iter().all(|part| error.text.contains(part)));
        if proof.is_empty() || !elsewhere.is_empty() || !refused {
            let texts: String = proof.iter().chain(&elsewhere).map(|error| error.text.as_str()).collect();
            let _ = writeln!(
                failures,
                "{}: {} errors of the proof, {} elsewhere; expected one with {:?}\n{texts}",
                mutation.name,
                proof.len(),
                elsewhere.len(),
                mutation.refused_by,
            );
        }
    }
    assert!(failures.is_empty(), "not refused, or not by the rule that is there for it:\n{failures}");
    println!("{} mutations, each refused by its rule", MUTATIONS.len());
}
