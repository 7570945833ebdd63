//! The expected state: every build has a label of its own, which its rows say, with the cluster and the store that they are of.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// No build has more keys; readers ask for all of them.
pub const KEYS_MAX: u64 = 33;
/// Every build has these keys.
const KEYS_MIN: u64 = 8;

/// A store of a cluster, as `a/s2`.
pub type StoreName = String;

/// A build of rows.
pub type Label = u64;

/// The values of a version, by key.
pub type Content = BTreeMap<u64, String>;

/// The pushes so far, and the faults found.
#[derive(Default)]
pub struct Model {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    builds: Vec<Build>,
    by_push: HashMap<String, Label>,
    by_version: HashMap<(StoreName, u64), Label>,
    wrong: Vec<String>,
    counts: BTreeMap<(String, String), u64>,
}

struct Build {
    store: StoreName,
    is_delta: bool,
}

fn value(store: &str, label: Label, key: u64) -> String {
    format!("{store} {label} {key} {}", "x".repeat((label % 90) as usize))
}

fn key_count(label: Label) -> u64 {
    KEYS_MIN + label % (KEYS_MAX - KEYS_MIN)
}

fn changed_key(label: Label) -> u64 {
    label % KEYS_MIN
}

impl Model {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }

    /// A new build of a store.
    pub fn build(&self, store: &str, is_delta: bool) -> Label {
        let mut known = self.known();
        known.builds.push(Build { store: store.to_owned(), is_delta });
        known.builds.len() as Label - 1
    }

    /// Whether a build is of changes.
    pub fn is_delta(&self, label: Label) -> bool {
        self.known().builds[label as usize].is_delta
    }

    /// The rows of a build, or its changes.
    pub fn rows(&self, label: Label) -> Content {
        let known = self.known();
        let build = &known.builds[label as usize];
        let keys = if build.is_delta { vec![changed_key(label)] } else { (0..key_count(label)).collect() };
        keys.into_iter().map(|key| (key, value(&build.store, label, key))).collect()
    }

    /// A push of this id is of this build, whatever becomes of it.
    pub fn pushes(&self, push: &str, label: Label) {
        self.known().by_push.insert(push.to_owned(), label);
    }

    /// A cluster said that a build became this version.
    pub fn serves(&self, store: &str, version: u64, label: Label) {
        let before = self.known().by_version.insert((store.to_owned(), version), label);
        if let Some(before) = before.filter(|before| *before != label) {
            self.wrong(format!("version {version} of {store} is build {before} and build {label}"));
        }
    }

    /// The build that a version should be, as far as any answer said.
    pub fn label(&self, store: &str, version: u64, folder: &str) -> Option<Label> {
        let known = self.known();
        let by_version = known.by_version.get(&(store.to_owned(), version));
        let push = folder.split_once('-').map_or("", |(_, push)| push);
        by_version.or_else(|| known.by_push.get(push)).copied()
    }

    /// Whether this is the content of one build of the store, and of `label` if that is known.
    pub fn check(&self, store: &str, content: &Content, label: Option<Label>) -> Result<(), String> {
        let known = self.known();
        let mut all = BTreeSet::new();
        let mut found = BTreeSet::new();
        for (key, text) in content {
            let label = text.split(' ').nth(1).and_then(|label| label.parse::<Label>().ok());
            let label = label.ok_or_else(|| format!("key {key} is {text:?}"))?;
            let build =
                known.builds.get(label as usize).ok_or_else(|| format!("there is no build {label}"))?;
            if build.store != store || *text != value(store, label, *key) {
                return Err(format!("key {key} is {text:?}, and build {label} is of {}", build.store));
            }
            found.insert(label);
            match build.is_delta {
                true if *key != changed_key(label) => return Err(format!("{label} has no key {key}")),
                true => {}
                false => drop(all.insert(label)),
            }
        }
        let keys = match all.first() {
            Some(first) if all.len() == 1 => key_count(*first),
            None => KEYS_MIN,
            _ => return Err(format!("it mixes the builds {all:?}")),
        };
        if !content.keys().copied().eq(0..keys) {
            return Err(format!("{} keys of {keys}: {content:?}", content.len()));
        }
        match label {
            Some(label) if !found.contains(&label) => Err(format!("it is {found:?}, not build {label}")),
            Some(label) if all.contains(&label) && 1 < found.len() => {
                Err(format!("it is {found:?}, not all of build {label}"))
            }
            _ => Ok(()),
        }
    }

    /// Something that must not be.
    pub fn wrong(&self, what: String) {
        eprintln!("WRONG: {what}");
        self.known().wrong.push(what);
    }

    pub fn assert_right(&self) {
        let known = self.known();
        assert!(
            known.wrong.is_empty(),
            "{} things are wrong:\n{}",
            known.wrong.len(),
            known.wrong.join("\n")
        );
    }

    /// Counts an operation and how it ended.
    pub fn count(&self, operation: &str, outcome: &str) {
        *self.known().counts.entry((operation.to_owned(), outcome.to_owned())).or_default() += 1;
    }

    /// The operations done, one line for each kind and outcome.
    pub fn report(&self) -> String {
        let known = self.known();
        let lines = known.counts.iter();
        lines.map(|((operation, outcome), count)| format!("{count:6}  {operation}: {outcome}\n")).collect()
    }
}
