//! Feature `bindgen`: the proof against a C header that somebody else wrote, and what is said when it cannot be
//! made. What `mutations.rs` does to the bindings is done to the header here, and goes through bindgen and `build.rs`.
#![cfg(feature = "bindgen")]

use std::fs;
use std::path::{Path, PathBuf};

use arrow_device_abi_support::compile::{cargo, errors, fresh_dir, write};

const HEADER: &str = "ARROW_DEVICE_ABI_HEADER";
const INCLUDE_PATHS: &str = "ARROW_DEVICE_ABI_INCLUDE_PATHS";

struct Mutation {
    name: &'static str,
    /// Stands in the header exactly once.
    from: &'static str,
    to: &'static str,
    /// Parts of the error that refuses it.
    refused_by: &'static [&'static str],
}

macro_rules! mutations {
    ($($name:literal: $from:literal => $to:literal; refused by $($part:literal),+;)+) => {
        &[$(Mutation { name: $name, from: $from, to: $to, refused_by: &[$($part),+] }),+]
    };
}

const MUTATIONS: &[Mutation] = mutations! {
    "reserved_gone": "  int64_t reserved[3];" => "";
        refused by "E0026", "does not have a field named `reserved`";
    "reserved_two": "reserved[3]" => "reserved[2]";
        refused by "E0308", "expected an array with a size of 3, found one with a size of 2";
    "id_and_type_swapped": "  ArrowDeviceType device_type;\n  void* sync_event;" =>
        "  void* sync_event;\n  ArrowDeviceType device_type;";
        refused by "E0080", "offset of ArrowDeviceArray::device_type differs from the C header's";
    "device_type_unsigned": "typedef int32_t ArrowDeviceType;" => "typedef uint32_t ArrowDeviceType;";
        refused by "E0308", "expected reference `&i32`", "found reference `&u32`";
    "x1_release_in_async_producer": "  void (*cancel)(struct ArrowAsyncProducer* self);\n" =>
        "  void (*cancel)(struct ArrowAsyncProducer* self);\n  void (*release)(struct ArrowAsyncProducer* self);\n";
        refused by "error: pattern requires `..` due to inaccessible fields";
    "x2_request_unsigned": "int64_t n);" => "uint64_t n);";
        refused by "E0308", "fn(_, i64)>`", "fn(_, u64)>`";
    "x3_producer_by_value": "  struct ArrowAsyncProducer* producer;" => "  struct ArrowAsyncProducer producer;";
        refused by "E0308", "expected reference `&*mut c::ArrowAsyncProducer`",
            "found reference `&c::ArrowAsyncProducer`";
    "release_of_a_constant": "(*release)(struct ArrowArray*);" => "(*release)(const struct ArrowArray*);";
        refused by "E0308", "fn(*mut c::ArrowArray)>`", "fn(*const c::ArrowArray)>`";
    "packed": "struct ArrowDeviceArray {" => "#pragma pack(2)\nstruct ArrowDeviceArray {";
        refused by "E0080", "offset of ArrowDeviceArray::sync_event differs from the C header's";
    "device_constant": "#define ARROW_DEVICE_CUDA_HOST 3 " => "#define ARROW_DEVICE_CUDA_HOST 5 ";
        refused by "E0080", "ARROW_DEVICE_CUDA_HOST differs from the C header's";
    "flag": "#define ARROW_FLAG_MAP_KEYS_SORTED 4" => "#define ARROW_FLAG_MAP_KEYS_SORTED 3";
        refused by "E0080", "ARROW_FLAG_MAP_KEYS_SORTED differs from the C header's";
    "statistics_key": "\"ARROW:row_count:exact\"" => "\"ARROW:rows:exact\"";
        refused by "E0080", "ARROW_STATISTICS_KEY_ROW_COUNT_EXACT differs from the C header's";
};

/// `cargo check --features bindgen` of this crate, and what it printed. In its own build folder: the crate in the usual
/// one would have to be built anew by whoever runs cargo next.
fn check(variables: &[(&str, &Path)]) -> (bool, String) {
    let mut cargo = cargo(Path::new(env!("CARGO_MANIFEST_DIR")), "check");
    cargo.args(["--lib", "--features", "bindgen", "--target-dir"]);
    cargo.arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("foreign_header_target"));
    for name in [HEADER, INCLUDE_PATHS] {
        cargo.env_remove(name);
    }
    let output = cargo.envs(variables.iter().copied()).output().expect("cargo");
    (output.status.success(), String::from_utf8(output.stderr).expect("UTF-8"))
}

/// Checks for a header that is to be proved; what cargo warns of besides is returned.
fn proved(variables: &[(&str, &Path)]) -> Vec<String> {
    let (success, output) = check(variables);
    assert!(success, "{variables:?}:\n{output}");
    output.lines().filter(|line| line.starts_with("warning")).map(str::to_owned).collect()
}

/// Checks that the build script gives up, and says all of `parts` in its one error.
#[track_caller]
fn refused(variables: &[(&str, &Path)], parts: &[&str]) {
    let (success, output) = check(variables);
    assert!(!success, "{variables:?}: built");
    let error = output.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    for part in parts {
        assert!(error.contains(part), "{variables:?}: nothing of `{part}` in the error of\n{output}");
    }
}

fn own_header() -> String {
    fs::read_to_string(Path::new(arrow_device_abi::INCLUDE_DIR).join("arrow_device_abi.h"))
        .expect("the header")
}

fn header(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(format!("{name}.h"));
    write(&path, text);
    path
}

/// In one test, for they share a build folder.
#[test]
fn the_proof_meets_foreign_headers() {
    let dir = fresh_dir(env!("CARGO_TARGET_TMPDIR"), "foreign_header");

    assert!(proved(&[]).is_empty(), "the crate's own header");
    let control = header(&dir, "control", &own_header());
    assert!(proved(&[(HEADER, &control)]).is_empty(), "the same header, as a foreign one");

    every_mutation_is_refused_by_its_rule(&dir);
    what_a_header_lacks_is_named(&dir);
    includes_are_found_where_the_environment_says(&dir);
    what_cannot_be_done_is_an_error_that_says_why(&dir);
}

fn every_mutation_is_refused_by_its_rule(dir: &Path) {
    for Mutation { name, from, to, refused_by } in MUTATIONS {
        let text = own_header();
        assert_eq!(text.matches(from).count(), 1, "{name}: `{from}` has to stand in the header once");
        let (success, output) = check(&[(HEADER, &header(dir, name, &text.replace(from, to)))]);
        assert!(!success, "{name} is not refused");
        let errors = errors(&output);
        assert!(
            errors.iter().all(|error| error.text.contains("src/raw/layout.rs:"))
                && errors.iter().any(|error| refused_by.iter().all(|part| error.text.contains(part))),
            "{name} is not refused by the rule that is there for it, {refused_by:?}:\n{output}",
        );
    }
    println!("{} mutations of the header, each refused by its rule", MUTATIONS.len());
}

/// What a header without the asynchronous part (nanoarrow's) does not define is not proved, and that is not hidden.
fn what_a_header_lacks_is_named(dir: &Path) {
    let text = own_header();
    let end = text.find("#ifndef ARROW_C_ASYNC_STREAM_INTERFACE").expect("the asynchronous part");
    let lacks_async =
        header(dir, "lacks_async", &format!("{}#endif\n", &text[..end].replace("extern \"C\" {", "")));
    let warnings = proved(&[(HEADER, &lacks_async)]);
    let lacking = ["ArrowAsyncTask", "ArrowAsyncProducer", "ArrowAsyncDeviceStreamHandler"];
    for name in lacking {
        let text = format!("does not define {name}: not proved against it");
        assert_eq!(warnings.iter().filter(|line| line.contains(&text)).count(), 1, "{name}: {warnings:#?}");
    }
    assert_eq!(warnings.iter().filter(|line| line.contains("does not define")).count(), lacking.len());

    // What the rest of such a header gets wrong is refused all the same.
    let wrong = fs::read_to_string(lacks_async).expect("a header").replace("reserved[3]", "reserved[2]");
    let (success, output) = check(&[(HEADER, &header(dir, "lacks_async_and_is_wrong", &wrong))]);
    assert!(!success && output.contains("E0308"), "{output}");

    let without_key = own_header().replace("#define ARROW_STATISTICS_KEY_ROW_COUNT_EXACT ", "#define OTHER ");
    let warnings = proved(&[(HEADER, &header(dir, "lacks_key", &without_key))]);
    assert!(
        warnings
            .iter()
            .any(|line| line.contains("does not define ARROW_STATISTICS_KEY_ROW_COUNT_EXACT: not")),
        "{warnings:#?}"
    );
}

fn includes_are_found_where_the_environment_says(dir: &Path) {
    let inner = dir.join("inner");
    header(&inner, "abi", &own_header());
    let outer = header(dir, "outer", "#include <abi.h>\n");
    refused(&[(HEADER, &outer)], &["outer.h", INCLUDE_PATHS]);
    let variables: [(&str, &Path); 2] = [(HEADER, &outer), (INCLUDE_PATHS, &inner)];
    assert!(proved(&variables).is_empty());

    // A proof is not kept when the header that it was really about has changed.
    header(&inner, "abi", &own_header().replace("reserved[3]", "reserved[2]"));
    let (success, output) = check(&variables);
    assert!(!success && output.contains("E0308"), "an included header was not read again:\n{output}");
}

fn what_cannot_be_done_is_an_error_that_says_why(dir: &Path) {
    refused(&[(HEADER, &dir.join("missing.h"))], &[HEADER, "missing.h", "there is no such file"]);
    let none = header(dir, "none", "struct Other { int field; };\n");
    refused(&[(HEADER, &none)], &[HEADER, "none.h", "defines none of the Arrow C structs"]);

    // The variable takes the place of every folder that libclang is looked for in. The header is a new one, for the
    // build script runs again only if what it reads has changed.
    let empty = dir.join("empty");
    fs::create_dir(&empty).expect("an empty folder");
    let unseen = header(dir, "unseen", &own_header());
    refused(&[(HEADER, &unseen), ("LIBCLANG_PATH", &empty)], &["libclang", "LIBCLANG_PATH", "`bindgen`"]);
}
