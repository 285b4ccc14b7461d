//! The table in `README.md`: each rule of SPEC.md and each case of CASES.md names its tests, or says why there is none.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Letter and last number.
const RULES: [(char, u32); 7] = [('X', 8), ('B', 10), ('S', 8), ('D', 17), ('A', 14), ('P', 8), ('C', 33)];

fn read(file: &str) -> Result<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The cells of the table whose first column is headed `rule`.
fn rows(readme: &str) -> Vec<[&str; 3]> {
    let table = readme.lines().skip_while(|line| !line.starts_with("| rule |")).skip(2);
    table
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            cells.try_into().unwrap_or_else(|_| panic!("not three cells: {line}"))
        })
        .collect()
}

/// The tests of a file: name and doc comment.
fn tests(source: &str) -> HashMap<&str, String> {
    let mut tests = HashMap::new();
    let (mut doc, mut is_test) = (String::new(), false);
    for line in source.lines() {
        if let Some(text) = line.strip_prefix("///") {
            doc.push_str(text);
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]";
        } else {
            if let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.strip_suffix("() {")) {
                if is_test {
                    tests.insert(name, doc.clone());
                }
            }
            doc.clear();
            is_test = false;
        }
    }
    tests
}

/// Whether the doc comment names the rule, or a line of a table in the file does: as the name of a case, such as
/// `"x1_release_in_header"`, or in a comment above it.
fn names(rule: &str, doc: &str, source: &str) -> bool {
    let mut words = doc.split(|char: char| !char.is_ascii_alphanumeric());
    words.any(|word| word == rule)
        || source.contains(&format!("\"{}_", rule.to_lowercase()))
        || source.contains(&format!(" // {rule}: "))
}

/// `file::test`, for one of a workspace member `member/file::test`, or a program that must not compile.
fn fault(rule: &str, test: &str) -> Result<(), String> {
    if test.starts_with("compile-fail/") {
        let source = read(test)?;
        let doc: String = source.lines().take_while(|line| line.starts_with("//!")).collect();
        return if names(rule, &doc, "") { Ok(()) } else { Err(format!("{test} does not name it")) };
    }
    let (file, name) = test.split_once("::").ok_or_else(|| format!("no `file::test`: {test}"))?;
    let path = match file.split_once('/') {
        Some(("opencl", file)) => format!("../examples/opencl/tests/{file}.rs"),
        Some((member, file)) => format!("{member}/tests/{file}.rs"),
        None => format!("{file}.rs"),
    };
    let source = read(&path)?;
    match tests(&source).get(name) {
        None => Err(format!("no `#[test] fn {name}()` in {path}")),
        Some(doc) if !names(rule, doc, &source) => Err(format!("{test} does not name it")),
        Some(_) => Ok(()),
    }
}

/// What is wrong with one row.
fn faults(rule: &str, what: &str, cell: &str) -> Vec<String> {
    if what.is_empty() {
        return vec![format!("{rule}: the second cell is empty")];
    }
    if let Some(reason) = cell.strip_prefix("none:") {
        let empty = reason.trim().is_empty();
        return if empty { vec![format!("{rule}: no test and no reason")] } else { Vec::new() };
    }
    let faults = cell.split(',').filter_map(|test| fault(rule, test.trim().trim_matches('`')).err());
    faults.map(|fault| format!("{rule}: {fault}")).collect()
}

#[test]
fn every_rule_has_a_test_or_a_reason() {
    let readme = read("README.md").unwrap();
    let rows = rows(&readme);
    let listed: Vec<_> = rows.iter().map(|[rule, ..]| (*rule).to_owned()).collect();
    let all =
        RULES.iter().flat_map(|&(letter, last)| (1..=last).map(move |number| format!("{letter}{number}")));
    assert_eq!(listed, all.collect::<Vec<_>>(), "the rules of the table, in order");

    let faults: Vec<_> = rows.iter().flat_map(|&[rule, what, tests]| faults(rule, what, tests)).collect();
    assert!(faults.is_empty(), "tests/README.md:\n{}", faults.join("\n"));
}

#[test]
fn faults_of_the_table_are_found() {
    let found = |rule, cell| faults(rule, "what", cell);
    assert!(found("B2", "`owned::drop_releases_the_base_struct_only`").is_empty());
    assert!(found("X1", "`mutations::every_mutation_is_refused_by_its_rule`").is_empty());
    assert!(found("X4", "`layout::every_number_is_the_c_compilers`").is_empty());
    assert!(found("C3", "`compile-fail/owned_is_not_clone.rs`").is_empty());
    assert!(found("C22", "`cuda/wait::raw_streams_and_names_of_streams`").is_empty());
    assert!(found("C10", "`pyo3/capsules::a_capsule_is_consumed_once`").is_empty());
    assert!(found("A2", "`async/receive::the_schema_comes_first`").is_empty());
    assert!(found("B2", "none: because").is_empty());

    assert_eq!(found("B2", "none:").len(), 1);
    assert_eq!(found("B2", "").len(), 1);
    assert_eq!(found("B2", "`no_such_file::test`").len(), 1);
    assert_eq!(found("B2", "`owned::no_such_test`").len(), 1);
    assert_eq!(found("B2", "`cuda/no_such_file::test`").len(), 1);
    assert_eq!(found("B2", "`cuda/wait::no_such_test`").len(), 1);
    assert_eq!(found("B2", "`cuda/wait::raw_streams_and_names_of_streams`").len(), 1);
    assert_eq!(found("B2", "`pyo3/owned::drop_releases_the_base_struct_only`").len(), 1);
    assert_eq!(found("B2", "`async/no_such_file::test`").len(), 1);
    assert_eq!(found("A2", "`async/receive::no_such_test`").len(), 1);
    assert_eq!(found("A3", "`async/receive::the_schema_comes_first`").len(), 1);
    assert_eq!(found("B2", "`compile-fail/owned_is_not_clone.rs`").len(), 1);
    assert_eq!(found("B2", "`compile-fail/no_such_program.rs`").len(), 1);
    assert_eq!(found("B2", "`owned::take`").len(), 1, "a function, but no test");
    let two = found("B3", "`owned::drop_releases_the_base_struct_only`, `owned::a_null_pointer_is_refused`");
    assert_eq!(two.len(), 2, "tests, but of other rules");
    assert_eq!(faults("B2", "", "none: because").len(), 1);
}
