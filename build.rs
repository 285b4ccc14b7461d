//! Does nothing unless the feature `bindgen` asks for fresh bindings, for the proof in `src/raw/layout.rs`.
//!
//! With it, writes to `OUT_DIR`:
//! - `bindings.rs` from the header that `ARROW_DEVICE_ABI_HEADER` names, or from `include/`, with bindgen's own
//!   assertions for this target;
//! - `portable.rs` from `include/`, without target-specific numbers: what `src/raw/bindings.rs` has to be.
//!
//! What cannot be done is a build error that says what to do; what the header lacks is a warning that names it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(arrow_device_abi_lacks, values(any()))");
    #[cfg(feature = "bindgen")]
    fresh::generate();
}

#[cfg(feature = "bindgen")]
mod fresh {
    use std::path::{Path, PathBuf};
    use std::{env, fs, panic, process};

    const HEADER: &str = "ARROW_DEVICE_ABI_HEADER";
    const INCLUDE_PATHS: &str = "ARROW_DEVICE_ABI_INCLUDE_PATHS";
    const OWN_HEADER: &str = "include/arrow_device_abi.h";

    const STRUCTS: [&str; 8] = [
        "ArrowSchema",
        "ArrowArray",
        "ArrowArrayStream",
        "ArrowDeviceArray",
        "ArrowDeviceArrayStream",
        "ArrowAsyncTask",
        "ArrowAsyncProducer",
        "ArrowAsyncDeviceStreamHandler",
    ];
    const MACROS: &str = "ARROW_(FLAG|DEVICE|STATISTICS_KEY)_";

    pub fn generate() {
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| fail("OUT_DIR is not set")));
        println!("cargo::rerun-if-changed={OWN_HEADER}");
        for name in [HEADER, INCLUDE_PATHS, "LIBCLANG_PATH"] {
            println!("cargo::rerun-if-env-changed={name}");
        }

        // Defines every macro too, so it is the list of what a header can lack.
        let portable = bindings(Path::new(OWN_HEADER), false);
        let fresh = match env::var_os(HEADER) {
            None => bindings(Path::new(OWN_HEADER), true),
            Some(header) => foreign(Path::new(&header), &portable),
        };
        for (file, text) in [("portable.rs", portable), ("bindings.rs", fresh)] {
            fs::write(out.join(file), text)
                .unwrap_or_else(|error| fail(&format!("cannot write {file}: {error}")));
        }
    }

    fn foreign(header: &Path, portable: &str) -> String {
        if !header.is_file() {
            fail(&format!("{HEADER} names `{}`, and there is no such file", header.display()));
        }
        println!("cargo::rerun-if-changed={}", header.display());
        let fresh = bindings(header, true);
        let has = |kind: &str, name: &str| {
            fresh.contains(&format!("pub {kind} {name} ")) || fresh.contains(&format!("pub {kind} {name}:"))
        };
        if !STRUCTS.iter().any(|name| has("struct", name)) {
            fail(&format!(
                "`{}`, which {HEADER} names, defines none of the Arrow C structs: name the header that does, such \
                 as Arrow C++'s `arrow/c/abi.h`",
                header.display()
            ));
        }
        let constants = portable
            .lines()
            .filter_map(|line| line.strip_prefix("pub const ")?.split(':').next())
            .filter(|name| name.starts_with("ARROW_"));
        let expected =
            STRUCTS.iter().map(|name| ("struct", *name)).chain(constants.map(|name| ("const", name)));
        for (kind, name) in expected {
            if !has(kind, name) {
                println!("cargo::rustc-cfg=arrow_device_abi_lacks=\"{name}\"");
                println!("cargo::warning={} does not define {name}: not proved against it", header.display());
            }
        }
        fresh
    }

    fn bindings(header: &Path, for_this_target: bool) -> String {
        let Some(path) = header.to_str() else {
            fail(&format!("the path of the header is not UTF-8: {}", header.display()));
        };
        // bindgen panics if it finds no libclang, so that is asked first and alone.
        if panic::catch_unwind(bindgen::clang_version).is_err() {
            fail(
                "feature `bindgen` needs libclang: install it (Debian: `libclang-dev`) or set LIBCLANG_PATH to the \
                 folder that holds it. The default features need none",
            );
        }
        let include_paths = env::var_os(INCLUDE_PATHS).unwrap_or_default();
        let include_paths = env::split_paths(&include_paths).filter(|path| !path.as_os_str().is_empty());
        let builder = bindgen::Builder::default()
            .header(path)
            // Cargo runs this again if an included file changes, or one of bindgen's own variables.
            .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
            .clang_args(include_paths.map(|path| format!("-I{}", path.display())))
            .allowlist_type(STRUCTS.join("|"))
            .allowlist_type("ArrowDeviceType")
            .allowlist_var(format!("{MACROS}.*"))
            .allowlist_recursively(true)
            .use_core()
            .generate_cstr(true)
            .default_macro_constant_type(bindgen::MacroTypeVariation::Signed)
            // A copy of a struct that holds a release callback is a double free.
            .derive_copy(false)
            .derive_debug(false)
            .generate_comments(false)
            .layout_tests(for_this_target)
            .formatter(bindgen::Formatter::Prettyplease)
            .disable_header_comment();
        match builder.generate() {
            Ok(bindings) => bindings.to_string(),
            Err(error) => fail(&format!(
                // One line: cargo takes no more for an error.
                "bindgen cannot read `{path}` (folders for its `#include`s can be named in {INCLUDE_PATHS}): {}",
                error.to_string().trim_end().replace('\n', "; ")
            )),
        }
    }

    fn fail(why: &str) -> ! {
        println!("cargo::error=arrow-device-abi: {why}");
        process::exit(1)
    }
}
