//! `include/arrow_device_abi.h` as C and C++ compilers see it. Beside foreign headers it is compiled in CI, where these
//! are (C32).

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use arrow_device_abi::{HEADER, INCLUDE_DIR};
use arrow_device_abi_support::skip;

/// D17: each guard, and what stands behind it: structs, macros by their beginnings. `ArrowDeviceType` is a typedef, so
/// not in the list; what uses it is.
const GUARDS: [(&str, &[&str], &[&str]); 5] = [
    ("ARROW_C_DATA_INTERFACE", &["ArrowSchema", "ArrowArray"], &["ARROW_FLAG_"]),
    ("ARROW_C_DEVICE_DATA_INTERFACE", &["ArrowDeviceArray"], &["ARROW_DEVICE_"]),
    ("ARROW_C_STREAM_INTERFACE", &["ArrowArrayStream"], &[]),
    ("ARROW_C_DEVICE_STREAM_INTERFACE", &["ArrowDeviceArrayStream"], &[]),
    (
        "ARROW_C_ASYNC_STREAM_INTERFACE",
        &["ArrowAsyncTask", "ArrowAsyncProducer", "ArrowAsyncDeviceStreamHandler"],
        &[],
    ),
];

#[derive(Clone, Copy)]
enum Language {
    C99,
    Cpp11,
}

impl Language {
    /// The compiler of the environment, which may come with arguments, or the system's.
    fn command(self) -> Command {
        let (variable, default) = match self {
            Self::C99 => ("CC", "cc"),
            Self::Cpp11 => ("CXX", "c++"),
        };
        let line = env::var(variable).unwrap_or_else(|_| default.to_owned());
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or(default));
        command.args(words).arg("-I").arg(INCLUDE_DIR);
        command.args(match self {
            Self::C99 => ["-x", "c", "-std=c99"],
            Self::Cpp11 => ["-x", "c++", "-std=c++11"],
        });
        command
    }

    fn is_there(self) -> bool {
        self.command().args(["-E", "-"]).stdin(Stdio::null()).output().is_ok()
    }

    /// The compiler's output for a translation unit, and whether it liked it.
    fn run(self, arguments: &[&str], unit: &str) -> (bool, String) {
        let mut child = self
            .command()
            .args(arguments)
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a compiler");
        child.stdin.take().expect("a pipe").write_all(unit.as_bytes()).expect("the compiler reads");
        let output = child.wait_with_output().expect("the compiler's output");
        let text = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    fn compile(self, unit: &str) -> (bool, String) {
        self.run(&["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"], unit)
    }
}

/// A machine that runs the tests has a C compiler, perhaps none for C++.
static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    assert!(Language::C99.is_there(), "no C compiler: set CC");
    if Language::Cpp11.is_there() {
        vec![Language::C99, Language::Cpp11]
    } else {
        skip("the header as C++11", "no C++ compiler: set CXX");
        vec![Language::C99]
    }
});

#[track_caller]
fn compiles(unit: &str) {
    for language in LANGUAGES.iter() {
        let (success, errors) = language.compile(unit);
        assert!(success, "{unit}\n{errors}");
    }
}

/// Uses every struct by value and every macro of the integers.
const USES_ALL: &str = "
struct all {
  struct ArrowSchema schema;
  struct ArrowArray array;
  struct ArrowArrayStream stream;
  struct ArrowDeviceArray device_array;
  struct ArrowDeviceArrayStream device_stream;
  struct ArrowAsyncTask task;
  struct ArrowAsyncProducer producer;
  struct ArrowAsyncDeviceStreamHandler handler;
};
int use(struct all* all);
int use(struct all* all) {
  ArrowDeviceType type = ARROW_DEVICE_CUDA_MANAGED;
  const char* key = ARROW_STATISTICS_KEY_MAX_VALUE_EXACT;
  all->device_array.array = all->array;
  all->device_array.device_type = type;
  all->schema.flags = ARROW_FLAG_NULLABLE | ARROW_FLAG_DICTIONARY_ORDERED | ARROW_FLAG_MAP_KEYS_SORTED;
  all->schema.format = key;
  return all->device_stream.get_next(&all->device_stream, &all->device_array);
}
";

#[test]
fn compiles_alone_and_twice() {
    let include = "#include \"arrow_device_abi.h\"\n";
    compiles(include);
    compiles(&format!("{include}{USES_ALL}"));
    compiles(&format!("{include}{include}{USES_ALL}"));
    // Another copy of the same structs, as of a vendored header: the five guards alone keep them from being defined
    // again.
    compiles(&format!("{include}#undef ARROW_DEVICE_ABI_H\n{include}{USES_ALL}"));
    // C32: a macro of the block is no guard of it.
    compiles(&format!("#define ARROW_FLAG_DICTIONARY_ORDERED 1\n{include}{USES_ALL}"));
}

/// Without this the test above would pass with a compiler that accepts anything.
#[test]
fn two_definitions_are_refused() {
    for (guard, structs, _) in GUARDS {
        let unit = format!(
            "#include \"arrow_device_abi.h\"\n#undef ARROW_DEVICE_ABI_H\n#undef {guard}\n#include \"arrow_device_abi.h\"\n"
        );
        for language in LANGUAGES.iter() {
            let (success, errors) = language.compile(&unit);
            assert!(!success && errors.contains(structs[0]), "{guard}: {errors}");
        }
    }
}

/// Names of the structs that the header defines with `defined` set beforehand, and of the macros with values.
fn contents(defined: &[&str]) -> (BTreeSet<String>, BTreeSet<String>) {
    let define: String = defined.iter().map(|name| format!("#define {name}\n")).collect();
    let unit = format!("{define}#include \"arrow_device_abi.h\"\n");
    let preprocess = |arguments: &[&str]| {
        let (success, text) = Language::C99.run(arguments, &unit);
        assert!(success, "{text}");
        text
    };
    let text = preprocess(&["-E", "-P"]);
    let structs = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("struct ")?.strip_suffix('{'))
        .map(|name| name.trim().to_owned());
    let macros = preprocess(&["-E", "-dM"]);
    let macros = macros
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split_once(' '))
        .filter(|(name, value)| name.starts_with("ARROW_") && !value.is_empty())
        .map(|(name, _)| name.to_owned());
    (structs.collect(), macros.collect())
}

/// D17, C32: each guard, under its exact name, hides its block, the whole of it, and nothing else.
#[test]
fn each_guard_hides_its_block() {
    let (all_structs, all_macros) = contents(&[]);
    assert_eq!(all_structs, GUARDS.iter().flat_map(|guard| guard.1).map(|name| name.to_string()).collect());
    assert_eq!(all_macros.len(), 3 + 14 + 14, "{all_macros:?}");

    for (guard, structs, macros) in GUARDS {
        let (left_structs, left_macros) = contents(&[guard]);
        let hidden: BTreeSet<&str> = all_structs.difference(&left_structs).map(String::as_str).collect();
        assert_eq!(hidden, structs.iter().copied().collect(), "structs hidden by {guard}");
        let hidden: BTreeSet<&String> = all_macros.difference(&left_macros).collect();
        let expected: BTreeSet<&String> = all_macros
            .iter()
            .filter(|name| macros.iter().any(|beginning| name.starts_with(beginning)))
            .collect();
        assert_eq!(hidden, expected, "macros hidden by {guard}");
        assert!(left_structs.is_subset(&all_structs) && left_macros.is_subset(&all_macros), "{guard} adds");
    }
    // The statistics keys stand behind none of them: nanoarrow's header has the guard without the keys.
    let (structs, macros) = contents(&GUARDS.map(|guard| guard.0));
    assert!(structs.is_empty(), "{structs:?}");
    assert_eq!(macros.len(), 14, "{macros:?}");
    assert!(macros.iter().all(|name| name.starts_with("ARROW_STATISTICS_KEY_")), "{macros:?}");
}

/// A header of somebody else's sees that ours has been there.
#[test]
fn all_guards_are_defined_afterwards() {
    let (success, macros) = Language::C99.run(&["-E", "-dM"], "#include \"arrow_device_abi.h\"\n");
    assert!(success, "{macros}");
    for (guard, _, _) in GUARDS {
        assert!(macros.lines().any(|line| line.trim_end() == format!("#define {guard}")), "{guard}");
    }
}

#[test]
fn constants_for_build_scripts_are_the_file() {
    let file = Path::new(INCLUDE_DIR).join("arrow_device_abi.h");
    assert_eq!(fs::read_to_string(file).expect("the header"), HEADER);
    assert_eq!(Path::new(INCLUDE_DIR), Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
    assert!(HEADER.is_ascii());
}
