//! Circles of files: files of a crate that name one another, so that none of them can be understood first. A crate may have one
//! circle, among all its files or among those of one folder, where a folder within counts as one file.

use crate::{repository::workspace::crate_folders, sources, without_tests};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The path of a module, or of something in it.
type ModulePath = Vec<String>;

/// The modules of a crate, each with the names that it brings into scope, and the paths that it names otherwise.
type Modules = BTreeMap<ModulePath, (BTreeMap<String, ModulePath>, Vec<ModulePath>)>;

#[test]
fn crates_have_at_most_one_circle_of_files() {
    let problems = crate_folders().into_iter().filter_map(|(name, folder)| {
        let circles = circles(&edges(&modules(&folder.join("src"))));
        (1 < circles.len()).then(|| format!("{name} has {} circles: {circles:#?}", circles.len()))
    });
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "at most one is allowed\n{}", problems.join("\n"));
}

fn modules(src: &Path) -> Modules {
    let texts = sources().into_iter().filter(|path| path.starts_with(src)).map(|path| {
        let within = path.strip_prefix(src).expect("it is within").with_extension("");
        let names = within.iter().map(|name| name.to_string_lossy().into_owned());
        let module: ModulePath = names.filter(|name| !["mod", "lib", "main"].contains(&&**name)).collect();
        (module, without_tests(&fs::read_to_string(&path).expect("a source can be read")).to_owned())
    });
    let mut texts: BTreeMap<ModulePath, String> = texts.collect();
    let tests = |(module, text): (&ModulePath, &String)| {
        let names = text.split("#[cfg(test)]").skip(1).filter_map(|rest| {
            let line = rest.trim_start().lines().next()?;
            line.strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name.to_owned())
        });
        names.map(|name| [module.clone(), vec![name]].concat()).collect::<Vec<_>>()
    };
    let tests: Vec<ModulePath> = texts.iter().flat_map(tests).collect();
    texts.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    let known: BTreeSet<ModulePath> = texts.keys().cloned().collect();
    let named = |(module, text): (ModulePath, String)| {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let code = code.collect::<Vec<_>>().join("\n");
        let (mut scope, mut paths) = (BTreeMap::new(), Vec::new());
        for (number, statement) in code.split("use ").enumerate() {
            let (tree, rest) = statement.split_once(';').filter(|_| 0 < number).unwrap_or(("", statement));
            for path in branches(tree).into_iter().filter_map(|path| absolute(&module, path, &known)) {
                let name = path.last().filter(|name| *name != "*").cloned();
                scope.insert(name.unwrap_or_else(|| path.join("::")), path.clone());
                paths.push(path);
            }
            let words = rest.split(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
            let words = words.filter(|word| word.contains("::"));
            let words = words.map(|word| word.split("::").map(str::to_owned).collect());
            paths.extend(words.filter_map(|path: ModulePath| match scope.get(&path[0]) {
                Some(start) => Some([start, &path[1..]].concat()),
                None => absolute(&module, path, &known),
            }));
        }
        (module, (scope, paths))
    };
    texts.into_iter().map(named).collect()
}

/// The paths of a `use`, whose braces may have further paths.
fn branches(tree: &str) -> Vec<ModulePath> {
    let (mut found, mut starts, mut path) = (Vec::new(), Vec::new(), String::new());
    for c in tree.chars().chain([',']) {
        match c {
            '{' => starts.push(path.clone()),
            ',' | '}' => {
                let name = path.split(" as ").next().unwrap_or_default().trim_end_matches("::self");
                found.push(name.split("::").map(|name| name.trim().to_owned()).collect::<ModulePath>());
                if c == '}' {
                    starts.pop();
                }
                path = starts.last().cloned().unwrap_or_default();
            }
            c => path.extend(Some(c).filter(|c| !c.is_whitespace() || path.ends_with(char::is_alphanumeric))),
        }
    }
    found.retain(|path| path.last().is_some_and(|name| !name.is_empty()));
    found
}

/// A path from the root of the crate; `None` if it leads out of the crate.
fn absolute(module: &[String], path: ModulePath, known: &BTreeSet<ModulePath>) -> Option<ModulePath> {
    let up = path.iter().take_while(|name| *name == "super").count();
    match &*path[0] {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(up)?], &path[up..]].concat()),
        _ => Some([module, &path[..]].concat()).filter(|_| known.contains(&[module, &path[..1]].concat())),
    }
}

/// The modules that each module names. A name that a module passes on is one of where it comes from.
fn edges(modules: &Modules) -> BTreeSet<(ModulePath, ModulePath)> {
    let target = |path: &ModulePath| {
        let mut path = path.clone();
        for _ in 0..8 {
            let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]))?;
            let scope = &modules[&path[..length]].0;
            let globs = scope.values().filter(|path| path.last().is_some_and(|name| name == "*"));
            let globbed = |name: &String| {
                let scopes = globs.filter_map(|glob| Some(&modules.get(&glob[..glob.len() - 1])?.0));
                scopes.filter_map(|scope| scope.get(name)).next()
            };
            let passed_on = path.get(length).and_then(|name| scope.get(name).or_else(|| globbed(name)));
            match passed_on {
                Some(from) if *from != path[..=length] => path = [from, &path[length + 1..]].concat(),
                _ => return Some(path[..length].to_vec()),
            }
        }
        None
    };
    let of = |(module, (_, paths)): (&ModulePath, &(_, Vec<ModulePath>))| {
        let targets = paths.iter().filter_map(target).map(|path| (module.clone(), path));
        targets.collect::<Vec<_>>()
    };
    modules.iter().flat_map(of).collect()
}

/// The circles among the files and folders of each folder.
fn circles(edges: &BTreeSet<(ModulePath, ModulePath)>) -> Vec<Vec<String>> {
    let mut siblings: BTreeSet<(String, String)> = BTreeSet::new();
    for (from, to) in edges {
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if shared < from.len() && shared < to.len() {
            siblings.insert((from[..=shared].join("/"), to[..=shared].join("/")));
        }
    }
    let reached = |start: &String| {
        let (mut next, mut reached) = (vec![start], BTreeSet::new());
        while let Some(name) = next.pop() {
            let further = siblings.iter().filter(|(from, _)| from == name).map(|(_, to)| to);
            next.extend(further.filter(|to| reached.insert((*to).clone())));
        }
        reached
    };
    let all: BTreeMap<&String, BTreeSet<String>> =
        siblings.iter().map(|(from, _)| (from, reached(from))).collect();
    let circle = |name: &&String| -> Vec<String> {
        all[*name]
            .iter()
            .filter(|other| all.get(other).is_some_and(|it| it.contains(*name)))
            .cloned()
            .collect()
    };
    let circles: BTreeSet<Vec<String>> = all.keys().map(circle).collect();
    circles.into_iter().filter(|circle| 1 < circle.len()).collect()
}
