//! Misuse that must not compile. Each file of `tests/compile-fail/` is a program that breaks a promise of the crate, and
//! marks the lines that the compiler has to refuse, and with what: `//~ E0599` in the line itself, or `//~^ E0599` below
//! it.
//!
//! The errors have to be exactly the marked ones, line by line: so a file cannot fail for another reason, such as a
//! name that has changed. Nothing hangs on the wording of a compiler's version.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use arrow_device_abi_support::compile::{cargo, errors, fresh_dir, write};

/// The one program that has to compile: it uses everything that the others misuse.
const CONTROL: &str = "control";

#[test]
fn misuse_does_not_compile() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = fs::read_dir(crate_dir.join("tests/compile-fail"))
        .expect("the programs")
        .map(|entry| entry.expect("a program").path())
        .collect();
    files.sort();
    let name = |file: &Path| file.file_stem().expect("a name").to_str().expect("UTF-8").to_owned();

    let dir = fresh_dir(env!("CARGO_TARGET_TMPDIR"), "compile_fail");
    let mut manifest = format!(
        "[package]\nname = \"compile-fail\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\narrow-device-abi = {{ path = {crate_dir:?} }}\n"
    );
    for file in &files {
        let _ = write!(manifest, "\n[[bin]]\nname = \"{}\"\npath = {file:?}\n", name(file));
    }
    write(&dir.join("Cargo.toml"), &manifest);
    // So that no version of anything has to be looked up.
    fs::copy(crate_dir.join("Cargo.lock"), dir.join("Cargo.lock")).expect("Cargo.lock");

    let check = |arguments: &[&str]| {
        let output =
            cargo(&dir, "check").args(["--target-dir", "target"]).args(arguments).output().expect("cargo");
        (output.status.success(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (success, output) = check(&["--bin", CONTROL]);
    assert!(success, "the program without misuse does not compile:\n{output}");
    let (_, output) = check(&["--bins", "--keep-going"]);
    let errors = errors(&output);

    let (mut refused, mut failures) = (0, String::new());
    for file in files.iter().filter(|file| name(file) != CONTROL) {
        let marked = marks(&fs::read_to_string(file).expect("a program"));
        assert!(!marked.is_empty(), "{} marks no line", file.display());
        refused += marked.len();
        let path = file.to_str().expect("UTF-8").replace('\\', "/");
        let (found, texts): (BTreeSet<_>, Vec<_>) = errors
            .iter()
            .filter(|error| error.file == path)
            .map(|error| ((error.line, error.code.clone()), &*error.text))
            .unzip();
        if found != marked {
            let unmarked: Vec<_> = found.difference(&marked).collect();
            let compiles: Vec<_> = marked.difference(&found).collect();
            let _ = writeln!(
                failures,
                "{path}: errors that are not marked: {unmarked:?}; marked but no errors: {compiles:?}\n{}",
                texts.concat()
            );
        }
    }
    assert!(failures.is_empty(), "{failures}");
    println!("{refused} misuses in {} programs, each refused", files.len() - 1);
}

/// Line and error code of each mark.
fn marks(program: &str) -> BTreeSet<(usize, String)> {
    let mut marks = BTreeSet::new();
    for (index, line) in program.lines().enumerate() {
        let Some((_, mark)) = line.split_once("//~") else { continue };
        let (line, code) = mark.strip_prefix('^').map_or((index + 1, mark), |code| (index, code));
        marks.insert((line, code.trim().to_owned()));
    }
    marks
}
