//! The sizes of types: how many methods they have, and over how many files these are spread.

use crate::{relative, repository::workspace::root, sources, without_tests};
use std::{collections::BTreeMap, fs};

/// The methods of no type are in more files.
const FILES_MAX: usize = 3;
/// No type has more methods.
const METHODS_MAX: usize = 40;

#[test]
fn types_have_few_methods_in_few_files() {
    let mut types: BTreeMap<(String, String), BTreeMap<String, usize>> = BTreeMap::new();
    for file in sources().iter().map(|path| relative(path)) {
        let Some((krate, _)) = file.split_once("/src/") else { continue };
        let text = fs::read_to_string(root().join(&file)).expect("a source can be read");
        for (name, methods) in own_methods(without_tests(&text)).into_iter().filter(|(_, count)| 0 < *count) {
            let files = types.entry((krate.to_owned(), name)).or_default();
            *files.entry(file.clone()).or_default() += methods;
        }
    }
    assert!(1_000 < types.len(), "the search finds the types");
    let is_large = |files: &BTreeMap<String, usize>| {
        FILES_MAX < files.len() || METHODS_MAX < files.values().sum::<usize>()
    };
    types.retain(|_, files| is_large(files));
    assert!(types.is_empty(), "at most {METHODS_MAX} methods in {FILES_MAX} files: {types:#?}");
}

/// The types of the implementations in a file, and how many methods each has, without those of traits.
fn own_methods(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for block in text.split("\nimpl").skip(1) {
        let block = block.split("\n}").next().unwrap_or_default();
        let (head, body) = block.split_once('{').unwrap_or((block, ""));
        let head = after_generics(head).split(" where ").next().unwrap_or_default();
        if head.contains(" for ") {
            continue;
        }
        let path = head.split(['<', ' ', '\n']).find(|word| !word.is_empty()).unwrap_or_default();
        let name = path.rsplit("::").next().unwrap_or_default();
        let is_method = |line: &&str| {
            line.strip_prefix("    ")
                .is_some_and(|code| !code.starts_with([' ', '/']) && format!(" {code}").contains(" fn "))
        };
        found.push((name.to_owned(), body.lines().filter(is_method).count()));
    }
    found
}

/// The rest of the head of an implementation after its parameters.
fn after_generics(head: &str) -> &str {
    let mut depth = 0;
    if !head.starts_with('<') {
        return head;
    }
    for (at, sign) in head.char_indices() {
        match sign {
            '<' => depth += 1,
            '>' if !head[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &head[at + 1..];
        }
    }
    head
}
