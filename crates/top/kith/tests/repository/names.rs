//! Names of public types are nouns, and two words that stood for many things stand for none.

use crate::{relative, sources};
use std::{collections::BTreeSet, fs};

/// There are no more public types whose name is only a participle, an adverb or a preposition.
const ALLOWED_MAX: usize = 15;

/// Those that there are. All but the second are nouns too, and mean these.
const ALLOWED: [(&str, &str); 12] = [
    ("Booking", "the keys of a read that are booked with a node's quota"),
    (
        "Decoded",
        "what came of an attempt to decode a message, which each operation of a crate names many times",
    ),
    ("Drawing", "a figure"),
    ("Greeting", "the first message of a client, as Redis greets with HELLO"),
    ("Hedging", "the setting that decides on hedged requests, as papers call it"),
    ("Indexing", "whether a field has an index"),
    ("Mapping", "memory that maps a file, as the manual of `mmap` calls it"),
    ("Numbering", "how the versions of a store are numbered"),
    ("Setting", "one of the settings that a benchmark compares"),
    ("Staging", "the folder in which files are put together, as package managers call it"),
    ("Steering", "the numbers by which controllers steer"),
    ("Tracking", "client-side caching, as Redis calls it"),
];

/// Participles that have no ending in common, adverbs and prepositions.
const IRREGULAR: &str = "about above after ahead along among apart around aside at away back before begun behind below \
    beside between beyond bought bound bred brought broken built by caught chosen come done down drawn driven else even \
    fallen fed felt for forgotten fought found from frozen given gone grown happened heard held here hidden in inside into \
    kept known laid led left lent lost made meant met now off on once only out outside over paid put read said seen sent \
    shown shut since slept sold soon sought spent split spoken spread stolen stood struck stuck sworn taken taught then \
    there thought through thrown till to told torn toward under understood until up upon via where wholly with within \
    without woken won worn wound written yet";

/// The name of the public type that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let code = line.trim_start().strip_prefix("pub")?;
    let code = match code.strip_prefix('(') {
        Some(restricted) => restricted.split_once(')')?.1,
        None => code,
    };
    let code = code.strip_prefix(' ')?;
    let name =
        ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|word| code.strip_prefix(word))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

/// Whether a name is one word that says what was or is done, or where and when.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|c| !c.is_uppercase());
    let word = name.to_lowercase();
    let ends = |ending: &str| {
        // `Ring` and `Thing` have no vowel before, `Need` and `Feed` another one.
        word.strip_suffix(ending)
            .is_some_and(|stem| stem.contains(['a', 'e', 'i', 'o', 'u']) && !stem.ends_with('e'))
    };
    let is_irregular = IRREGULAR.split_whitespace().any(|irregular| irregular == word);
    is_one_word && (ends("ed") || ends("ing") || word.ends_with("wn") || is_irregular)
}

#[test]
fn public_types_are_named_by_nouns() {
    let mut found = BTreeSet::new();
    for path in sources().iter().filter(|path| relative(path).contains("/src/")) {
        let text = fs::read_to_string(path).expect("a source can be read");
        let names = text.lines().filter_map(public_type).filter(|name| is_participle(name));
        found.extend(names.map(|name| (name.to_owned(), relative(path))));
    }
    let is_allowed = |name: &str| ALLOWED.iter().any(|(allowed, _)| *allowed == name);
    let wrong: Vec<_> = found.iter().filter(|(name, _)| !is_allowed(name)).collect();
    assert!(wrong.is_empty(), "these names are no nouns: {wrong:?}");
    let is_found = |name: &str| found.iter().any(|(found, _)| found == name);
    let gone: Vec<_> = ALLOWED.iter().filter(|(name, _)| !is_found(name)).collect();
    assert!(gone.is_empty(), "there are no such types any more: {gone:?}");
    const { assert!(ALLOWED.len() <= ALLOWED_MAX) };
}

#[test]
fn participles_are_recognized() {
    for name in ["Told", "Answered", "Reading", "Known", "After", "Drawn"] {
        assert!(is_participle(name), "{name}");
    }
    for name in ["Ring", "Need", "Feed", "Thing", "Reply", "ToldStory", "ReadingStep"] {
        assert!(!is_participle(name), "{name}");
    }
    assert_eq!(public_type("    pub(in crate::a) struct Told<'a> {"), Some("Told"));
    assert_eq!(public_type("struct Told {"), None);
}

/// The words of a line, with those inside identifiers.
fn words(line: &str) -> impl Iterator<Item = String> {
    let parts = line.split(|c: char| !c.is_alphanumeric());
    parts.flat_map(|part| {
        let mut words = vec![String::new()];
        for c in part.chars() {
            if c.is_uppercase() {
                words.push(String::new());
            }
            words.last_mut().expect("there is one").extend(c.to_lowercase());
        }
        words
    })
}

/// A metric keeps its name, because dashboards know it.
const METRIC: &str = concat!("kith_node_waits_", "told", "_total");

#[test]
fn something_is_reported_answered_or_asked_but_not_told() {
    let banned = "told";
    let mut found = Vec::new();
    for path in sources().iter().filter(|path| !path.ends_with("repository/names.rs")) {
        let text = fs::read_to_string(path).expect("a source can be read");
        for (number, line) in text.lines().enumerate() {
            if words(&line.replace(METRIC, "")).any(|word| word == banned) {
                found.push(format!("{}:{}: {line}", relative(path), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "say who hears of it, or what is reported:\n{}", found.join("\n"));
}

/// Files that set the field of a message, which keeps its name because other programs read it.
const MESSAGES: [&str; 2] = ["kith-node/src/repair/verify.rs", "kith-node/src/repair/verify/built.rs"];

/// Whether a line of code declares a parameter, a field or a variable of this name.
fn declares(line: &str, name: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    // Text in quotes is no code.
    let code: String = code.split('"').step_by(2).collect();
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || "_.:".contains(c))
            && !after.starts_with(|c: char| c.is_alphanumeric() || "_(".contains(c));
        let is_typed = after.starts_with(':') && !after.starts_with("::");
        let before = before.trim_end_matches(['&', '(', ' ']);
        let is_bound = before.ends_with('|') && after.starts_with(['|', ','])
            || after.starts_with(['|', ')']) && code[..at].contains('|') && before.ends_with(',')
            || ["let", "let mut", "for"].iter().any(|word| before.ends_with(word));
        is_word && (is_typed || is_bound)
    })
}

#[test]
fn an_index_a_position_or_a_folder_is_named_as_what_it_is() {
    let mut found = Vec::new();
    for path in sources() {
        let name = relative(&path);
        if name.ends_with("repository/names.rs") || MESSAGES.iter().any(|file| name.ends_with(file)) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source can be read");
        let lines = text.lines().enumerate().filter(|(_, line)| declares(line, "place"));
        found.extend(lines.map(|(number, line)| format!("{name}:{}: {line}", number + 1)));
    }
    assert!(found.is_empty(), "a name says what it is:\n{}", found.join("\n"));
}

#[test]
fn declarations_are_recognized() {
    for line in [
        "    place: u64,",
        "fn f(place: &str) {",
        "|place| 7",
        "|(place, key)| 7",
        "|(key, place)| 7",
        "let place = 7;",
    ] {
        assert!(declares(line, "place"), "{line}");
    }
    for line in [
        "// place: u64",
        "place(7)",
        "item.place()",
        "use place::of;",
        "and_then(|it| place::of(it))",
        "\"take its place: it\"",
        "places: u64",
    ] {
        assert!(!declares(line, "place"), "{line}");
    }
}
