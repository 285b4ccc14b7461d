//! Runs cargo on generated crates, and reads the errors of the compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Target that the tests are compiled for.
pub const TARGET: &str = env!("SUPPORT_TARGET");

/// The cargo that runs this test, in `dir`, for the target of this test: proofs that hang on the data model are made
/// for the one that runs. `RUSTC` and the choice of a toolchain are inherited. Never asks the network: what it needs
/// was needed for this test too.
pub fn cargo(dir: &Path, command: &str) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(dir).args([command, "--offline", "--color=never", "--target", TARGET]);
    // Each unit is compiled once.
    cargo.env("CARGO_INCREMENTAL", "0");
    cargo
}

/// An error as rustc prints it.
#[derive(Debug)]
pub struct CompileError {
    /// Such as `E0308`; empty for an error without a code.
    pub code: String,
    /// File as rustc names it, with `/` on every system.
    pub file: String,
    pub line: usize,
    /// The whole of it, notes included.
    pub text: String,
}

/// The errors in rustc's or cargo's output that point into a file.
pub fn errors(output: &str) -> Vec<CompileError> {
    let mut blocks: Vec<String> = Vec::new();
    for line in output.lines() {
        if line.starts_with("error") || line.starts_with("warning") || blocks.is_empty() {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push_str(line);
            block.push('\n');
        }
    }
    blocks.retain(|block| block.starts_with("error"));
    blocks.into_iter().filter_map(error).collect()
}

fn error(text: String) -> Option<CompileError> {
    let code = text.strip_prefix("error[").and_then(|rest| rest.split(']').next()).unwrap_or_default();
    let place = text.lines().find_map(|line| line.trim_start().strip_prefix("--> "))?;
    let mut place = place.rsplitn(3, ':');
    let (_column, line, file) = (place.next()?, place.next()?.parse().ok()?, place.next()?);
    Some(CompileError { code: code.to_owned(), file: file.replace('\\', "/"), line, text })
}

/// An empty folder for generated files under `parent`, which is `CARGO_TARGET_TMPDIR` of the test.
///
/// # Panics
///
/// If it cannot be made.
pub fn fresh_dir(parent: &str, name: &str) -> PathBuf {
    let dir = Path::new(parent).join(name);
    if let Err(error) = fs::remove_dir_all(&dir) {
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{}: {error}", dir.display());
    }
    fs::create_dir_all(&dir).expect("a folder for generated files");
    dir
}

/// Writes a file, and the folders that it is in.
///
/// # Panics
///
/// If it cannot be written.
pub fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a file in a folder")).expect("a folder for a generated file");
    fs::write(file, text).expect("a generated file");
}
