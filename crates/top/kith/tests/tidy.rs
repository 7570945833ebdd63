//! House rules that a compiler does not check: allowed crate edges, file and function
//! sizes (a ratchet: only downward), left-over marks, untracked tests.

mod repository {
    mod circles;
    mod closure;
    mod code_lines;
    mod names;
    mod types;
    pub mod workspace;
}

use repository::workspace::{crate_folders, root};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// No source file is longer, tests in it included. Lower it when the longest shrinks.
const FILE_LINES_MAX: usize = 640;
/// At least nine source files in ten are no longer than this, tests in them excluded.
const FILE_LINES_USUAL: usize = 400;
/// No function is longer.
const FUNCTION_LINES_MAX: usize = 90;
/// There are no more crates.
const CRATES_MAX: usize = 25;
/// No crate has more lines of source.
const CRATE_LINES_MAX: usize = 16_000;

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("clients/python/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(20 < found.len(), "the walk finds the sources");
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// The table of `ARCHITECTURE.md`: crate → crates it depends on.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md can be read");
    let rows = text.lines().filter(|line| line.starts_with("| `kith"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = cells[3].split(',').map(|name| name.trim().trim_matches('`'));
        let names = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        (cells[1].trim_matches('`').to_owned(), names)
    })
    .collect()
}

#[test]
fn crates_depend_on_what_the_architecture_says() {
    let edges = edges();
    let python = ("kith-python".to_owned(), root().join("clients/python"));
    for (name, folder) in crate_folders().into_iter().chain([python]) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let package = manifest.split("name = \"").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(package, Some(&*name), "a crate lies in a folder of its name");
        let rule = edges.get(&name).unwrap_or_else(|| panic!("{name} has no row in ARCHITECTURE.md"));
        if rule.contains("all of them") {
            continue;
        }
        let runtime = manifest.split("[dev-dependencies]").next().unwrap();
        let dependencies = runtime.lines().filter(|line| line.starts_with("kith-"));
        let dependencies: BTreeSet<String> =
            dependencies.map(|line| line.split(['.', ' ', '=']).next().unwrap().to_owned()).collect();
        assert_eq!(dependencies, *rule, "the manifest of {name}, and its row in ARCHITECTURE.md");
    }
}

/// The folders of `crates/`, and those from which a crate in them may depend on others.
const LAYERS: [(&str, &[&str]); 6] = [
    ("words", &["words"]),
    ("decide", &["words", "decide"]),
    ("files", &["words", "files"]),
    ("shell", &["words", "decide", "files", "shell"]),
    ("beside", &["words", "decide", "beside"]),
    ("top", &["words", "decide", "files", "shell", "beside", "top"]),
];

#[test]
fn crates_depend_only_on_layers_below_their_own() {
    let layer = |folder: &Path| folder.parent()?.file_name()?.to_str().map(str::to_owned);
    let layers: BTreeMap<_, _> =
        crate_folders().into_iter().map(|(name, folder)| (name, layer(&folder).unwrap())).collect();
    let edges = edges();
    for (name, own) in &layers {
        let below = LAYERS.iter().find(|(layer, _)| layer == own);
        let (_, below) = below.unwrap_or_else(|| panic!("{own} is no layer"));
        for dependency in edges[name].iter().filter(|dependency| layers.contains_key(*dependency)) {
            let layer = layers[dependency].as_str();
            assert!(below.contains(&layer), "{name} ({own}) depends on {dependency} ({layer})");
        }
    }
}

#[test]
fn crates_stay_few_and_small() {
    let folders = crate_folders();
    assert!(folders.len() <= CRATES_MAX, "{} crates, at most {CRATES_MAX}", folders.len());
    let sources = sources();
    for (name, folder) in folders {
        let own = sources.iter().filter(|path| path.starts_with(folder.join("src")));
        let lines: usize = own.map(|path| fs::read_to_string(path).unwrap().lines().count()).sum();
        assert!(0 < lines && lines <= CRATE_LINES_MAX, "{name}: {lines} lines, at most {CRATE_LINES_MAX}");
    }
}

#[test]
fn files_and_functions_stay_readable() {
    let mut problems = Vec::new();
    let mut long = 0;
    let sources = sources();
    for path in &sources {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().count();
        long += usize::from(FILE_LINES_USUAL < without_tests(&text).lines().count());
        if FILE_LINES_MAX < lines {
            problems.push(format!("{}: {lines} lines, at most {FILE_LINES_MAX}", relative(path)));
        }
        for (name, length) in functions(&text) {
            if FUNCTION_LINES_MAX < length {
                problems.push(format!(
                    "{}: fn {name} has {length} lines, at most {FUNCTION_LINES_MAX}",
                    relative(path)
                ));
            }
        }
    }
    if sources.len() < long * 10 {
        problems.push(format!("{long} of {} files are over {FILE_LINES_USUAL} lines", sources.len()));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Name and length of each function, by indentation: rustfmt keeps a body's brace in the column of its `fn`.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let Some(after) =
            ["fn ", "pub fn ", "pub(crate) fn ", "async fn ", "pub async fn ", "pub(super) fn "]
                .iter()
                .find_map(|prefix| trimmed.strip_prefix(prefix))
        else {
            continue;
        };
        let indent = &line[..line.len() - trimmed.len()];
        let close = format!("{indent}}}");
        // A trait's function has a semicolon in that column, and no body.
        let declared =
            |line: &str| line.ends_with(';') && line.trim_start().len() + indent.len() == line.len();
        let end = lines[start..].iter().position(|line| *line == close || declared(line));
        if let Some(length) = end.filter(|end| !declared(lines[start + end])) {
            found.push((after.split(['(', '<']).next().unwrap_or("?").to_owned(), length + 1));
        }
    }
    found
}

#[test]
fn nothing_is_left_over() {
    let marks = [
        concat!("db", "g!("),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[ig", "nore"),
        concat!("FIX", "ME"),
    ];
    let vague = ["Manager", "Util", "Helper"];
    let mut problems = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            for mark in marks.iter().filter(|mark| line.contains(**mark)) {
                problems.push(format!("{}:{}: {mark}", relative(&path), number + 1));
            }
            let named = ["struct ", "enum ", "trait "].iter().any(|word| line.contains(word));
            for word in vague.iter().filter(|word| named && line.contains(**word)) {
                problems.push(format!(
                    "{}:{}: a name says what a thing is, not {word:?}",
                    relative(&path),
                    number + 1
                ));
            }
        }
        if !text.starts_with("//!") {
            problems.push(format!("{}: does not open with what it is (`//!`)", relative(&path)));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// CI saves minutes by not building test programs that would be empty.
#[test]
fn crates_whose_tests_are_switched_off_have_none() {
    for path in sources() {
        let name = relative(&path);
        let krate = name.split("/src/").next().expect("a path has a beginning");
        let manifest = fs::read_to_string(root().join(krate).join("Cargo.toml")).unwrap_or_default();
        let text = fs::read_to_string(&path).unwrap();
        let code = text.lines().map(str::trim_start);
        let fences = |wanted: &str| {
            let comments = code.clone().filter(|line| line.starts_with("//"));
            comments.filter(|line| line.trim_start_matches(['/', '!', ' ']).starts_with(wanted)).count()
        };
        // A fence without a language begins an example in Rust, or ends any.
        let has_example = 2 * fences("```text") < fences("```");
        assert!(
            !(manifest.contains("doctest = false") && has_example),
            "{name}: its example would not be tested"
        );
        let has_test =
            code.clone().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
        assert!(!(manifest.contains("\ntest = false") && has_test), "{name}: its tests would not be run");
    }
}

#[test]
fn unsafe_code_sits_in_the_modules_that_the_architecture_names() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let allowed = [
            "kith-engine/src/map/mod.rs",
            "kith-engine/src/map/sigbus.rs",
            "kith-engine/src/map/tests.rs",
            "kith-net/src/frames/shared.rs",
            "kith/tests/tidy.rs",
        ];
        let name = relative(&path);
        let uses = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or_default();
            code.contains("unsafe {")
                || code.contains("unsafe fn")
                || code.contains("unsafe impl")
                || code.contains("unsafe extern")
        });
        assert!(
            !uses || allowed.iter().any(|file| name.ends_with(&format!("/{file}"))),
            "{name} uses unsafe code"
        );
    }
}

#[test]
fn deciding_crates_have_no_effects() {
    let effects = [
        "std::fs",
        "std::net",
        "std::time::Instant",
        "Instant::now",
        "SystemTime",
        "types::clock",
        "std::thread",
        "tokio",
        "tracing",
        "rand::rng(",
    ];
    for path in sources() {
        let name = relative(&path);
        let decides = ["crates/words/", "crates/decide/"].iter().any(|layer| name.starts_with(layer));
        if !decides || !name.contains("/src/") || name.ends_with("kith-types/src/clock.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        // A channel has no effect by itself.
        for line in code.map(|line| line.replace("tokio::sync", "")) {
            for effect in effects {
                assert!(!line.contains(effect), "{name} decides, and has no {effect}: {line}");
            }
        }
    }
}

/// The output of git; `None` where there is no git.
fn git(arguments: &[&str]) -> Option<String> {
    let output = std::process::Command::new("git").args(arguments).current_dir(root()).output();
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => {
            eprintln!("skipped: git is not installed");
            None
        }
    }
}

#[test]
fn every_test_file_is_tracked() {
    let folders = ["clients", "crates", "scripts", "docs"];
    let asked = [&["ls-files", "--others", "--exclude-standard"][..], &folders].concat();
    let Some(untracked) = git(&asked) else { return };
    if std::env::var_os("CI").is_some() {
        assert!(untracked.is_empty(), "untracked files:\n{untracked}");
    }
}

/// Scripts and documents too, which nothing compiles.
#[test]
fn no_file_holds_both_sides_of_a_merge() {
    let sides = [concat!("^<<<<", "<<< "), concat!("^>>>>", ">>> ")];
    let Some(found) = git(&["grep", "-nIE", "-e", sides[0], "-e", sides[1]]) else { return };
    assert!(found.is_empty(), "\n{found}");
}

/// Documents, and the number of words that they have at most together. Lower a number when its documents shrink.
const WORDS: [(&[&str], usize); 9] = [
    (&["README.md"], 1_200),
    (&["ARCHITECTURE.md"], 2_700),
    (&["CONTRIBUTING.md"], 1_200),
    (&["CHANGELOG.md"], 200),
    (&["docs/README.md"], 300),
    (&["docs/glossary.md"], 900),
    (&["docs/design"], 18_000),
    (&["docs/benchmarks.md"], 4_000),
    (
        &[
            "docs/errors.md",
            "docs/gremlin.md",
            "docs/live-graph.md",
            "docs/loading.md",
            "docs/operating",
            "docs/python.md",
            "docs/queries.md",
            "docs/redis.md",
            "docs/stores.md",
        ],
        38_000,
    ),
];

#[test]
fn documents_stay_short() {
    let pages = |path: &PathBuf| match path.is_dir() {
        true => fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect(),
        false => vec![path.clone()],
    };
    for (documents, most) in WORDS {
        let pages = documents.iter().flat_map(|document| pages(&root().join(document)));
        let text = pages.map(|page| fs::read_to_string(page).unwrap());
        let words: usize = text.map(|text| text.split_whitespace().count()).sum();
        assert!(words <= most, "{documents:?} have {words} words, and {most} at most");
    }
}

#[test]
fn front_pages_of_crates_can_be_read_in_two_minutes() {
    for (name, folder) in crate_folders() {
        let page =
            ["src/lib.rs", "src/main.rs"].iter().find_map(|page| fs::read_to_string(folder.join(page)).ok());
        let page = page.unwrap_or_else(|| panic!("{name} has no front page"));
        let lines = page.lines().filter_map(|line| line.strip_prefix("//!"));
        let words: usize = lines.map(|line| line.split_whitespace().count()).sum();
        assert!((100..=300).contains(&words), "the front page of {name} has {words} words");
    }
}
