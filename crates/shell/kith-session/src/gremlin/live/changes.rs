//! The changes that a traversal has made so far, for the error of one that fails in between.

use parking_lot::Mutex;

/// The number of changes that an error names.
const NAMED_MAX: usize = 5;

/// The changes of one traversal.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    made: NamedChanges,
    /// The changes whose outcome is unknown. They were sent at the same time, and the traversal ends with them.
    unknown: NamedChanges,
}

/// Changes of which the first ones are named, such as `added vertex 7`.
#[derive(Debug, Default)]
struct NamedChanges {
    first: Vec<String>,
    count: u64,
}

impl NamedChanges {
    fn add(&mut self, what: String) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(what);
        }
    }

    fn list(&self) -> String {
        let rest = self.count - self.first.len() as u64;
        let rest = if rest == 0 { String::new() } else { format!(", and {rest} more") };
        format!("{}{rest}", self.first.join(", "))
    }
}

impl Changes {
    /// Notes a change that took place, such as `added vertex 7`.
    pub fn made(&self, what: String) {
        self.0.lock().made.add(what);
    }

    /// Notes a change of which nobody knows whether it took place.
    pub fn unknown(&self, what: String) {
        self.0.lock().unknown.add(what);
    }

    /// Whether anything was changed.
    pub fn any(&self) -> bool {
        0 < self.0.lock().made.count
    }

    /// Whether the outcome of a change is unknown.
    pub fn is_unknown(&self) -> bool {
        0 < self.0.lock().unknown.count
    }

    /// The changes so far, as a sentence. `None` if nothing was, and no outcome is unknown.
    pub fn summary(&self) -> Option<String> {
        let Made { made, unknown } = &*self.0.lock();
        let unknown = match unknown.count {
            0 => None,
            1 => Some(format!("nobody knows whether it {}", unknown.list())),
            count => Some(format!("nobody knows which of {count} changes it made: {}", unknown.list())),
        };
        let made = match made.count {
            0 => None,
            1 => Some(format!("before that, the traversal {}", made.list())),
            count => Some(format!("before that, the traversal made {count} changes: it {}", made.list())),
        };
        let parts: Vec<String> = unknown.into_iter().chain(made).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_changes_are_named_and_the_others_are_counted() {
        let changes = Changes::default();
        assert_eq!((changes.summary(), changes.any()), (None, false));
        changes.made("added vertex 1".to_owned());
        assert_eq!(changes.summary().as_deref(), Some("before that, the traversal added vertex 1"));
        (2..=7).for_each(|id| changes.made(format!("added vertex {id}")));
        let summary = changes.summary().expect("it changed something");
        assert!(summary.contains("made 7 changes: it added vertex 1, added vertex 2"), "{summary}");
        assert!(summary.ends_with("added vertex 5, and 2 more"), "{summary}");
        changes.unknown("removed vertex 9".to_owned());
        let summary = changes.summary().expect("it changed something");
        assert!(summary.starts_with("nobody knows whether it removed vertex 9; before that"), "{summary}");
        changes.unknown("added vertex 10".to_owned());
        let summary = changes.summary().expect("it changed something");
        let unknown =
            "nobody knows which of 2 changes it made: removed vertex 9, added vertex 10; before that";
        assert!(summary.starts_with(unknown), "{summary}");
    }
}
