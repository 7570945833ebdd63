//! Counts the lines of code that a crate compiles: neither blank lines nor comments, nor tests, nor what belongs to a feature
//! that is off. Generated code is not counted.

use std::{collections::BTreeSet, fs, path::Path};

/// The lines of a file and of the modules that it declares. Their files are in `folder`.
///
/// # Panics
/// If a file cannot be read.
pub fn code_lines(file: &Path, folder: &Path, features: &BTreeSet<String>) -> usize {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let mut lines = text.lines().filter(is_code);
    let mut count = 0;
    while let Some(line) = lines.next() {
        if condition(line.trim()).is_some_and(|condition| !holds(condition, features)) {
            skip_item(&mut lines);
            continue;
        }
        count += 1;
        if let Some(module) = declared(line.trim()) {
            let below = folder.join(module);
            let beside = folder.join(format!("{module}.rs"));
            let file = if beside.is_file() { beside } else { below.join("mod.rs") };
            count += code_lines(&file, &below, features);
        }
    }
    count
}

/// The condition of an attribute `#[cfg(…)]`.
fn condition(line: &str) -> Option<&str> {
    line.strip_prefix("#[cfg(")?.strip_suffix(")]")
}

/// Whether a condition holds outside of tests. Conditions about the machine count as true.
fn holds(condition: &str, features: &BTreeSet<String>) -> bool {
    let one = |text: &str| match text.strip_prefix("feature = ") {
        Some(feature) => features.contains(feature.trim_matches('"')),
        None => text != "test",
    };
    let inside = |name: &str| condition.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    match (inside("any"), inside("all")) {
        (Some(parts), _) => parts.split(", ").any(one),
        (_, Some(parts)) => parts.split(", ").all(one),
        _ => one(condition),
    }
}

/// Skips the item that follows an attribute, with its other attributes.
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some(first) = lines.find(|line| !line.trim_start().starts_with("#[")) else { return };
    let ends = |line: &str| line.ends_with([';', ',']) || line.trim_start().starts_with('}');
    let is_last = |line: &str| indent(line) == indent(first) && ends(line);
    if !is_last(first) {
        let _ = lines.find(|line| is_last(line));
    }
}

/// The module that a line declares, and that has a file of its own.
fn declared(line: &str) -> Option<&str> {
    let name = line.strip_suffix(';')?.rsplit_once("mod ")?;
    ["", "pub ", "pub(crate) ", "pub(super) "].contains(&name.0).then_some(name.1)
}

#[test]
fn only_code_that_is_compiled_counts() {
    let folder = std::env::temp_dir().join(format!("kith-code-lines-{}", std::process::id()));
    fs::create_dir_all(folder.join("deep")).unwrap();
    let root = "//! A crate.\n\nmod flat;\npub mod deep;\n#[cfg(test)]\nmod gone;\n#[cfg(feature = \"on\")]\n\
                pub mod more;\n#[cfg(feature = \"off\")]\npub mod gone;\n#[cfg(any(test, feature = \"off\"))]\n\
                #[derive(Debug)]\nstruct Gone {\n    a: u8,\n}\n// A comment.\nstruct Here;\n#[cfg(test)]\n\
                mod tests {\n    fn gone() {}\n}\n";
    fs::write(folder.join("lib.rs"), root).unwrap();
    fs::write(folder.join("flat.rs"), "fn one() {}\n").unwrap();
    fs::write(folder.join("more.rs"), "fn one() {\n}\n").unwrap();
    fs::write(folder.join("deep/mod.rs"), "mod inner;\n").unwrap();
    fs::write(folder.join("deep/inner.rs"), "fn one() {\n    two();\n}\n").unwrap();
    let lines = code_lines(&folder.join("lib.rs"), &folder, &BTreeSet::from(["on".to_owned()]));
    fs::remove_dir_all(&folder).unwrap();
    // Of the crate itself `mod flat`, `mod deep`, a condition, `mod more` and `struct Here`.
    assert_eq!(lines, 5 + 1 + 2 + 1 + 3);
}
