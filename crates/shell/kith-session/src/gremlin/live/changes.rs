//! The changes that a traversal has made so far, for the error of one that fails in between.

use parking_lot::Mutex;

/// The number of changes that an error names.
const NAMED_MAX: usize = 5;

/// The changes of one traversal.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    first: Vec<String>,
    count: u64,
    /// The change whose outcome is unknown. The traversal ends with it.
    unknown: Option<String>,
}

impl Changes {
    /// Notes a change that took place, such as `added vertex 7`.
    pub fn made(&self, what: String) {
        let mut made = self.0.lock();
        made.count += 1;
        if made.first.len() < NAMED_MAX {
            made.first.push(what);
        }
    }

    /// Notes a change of which nobody knows whether it took place.
    pub fn unknown(&self, what: String) {
        self.0.lock().unknown = Some(what);
    }

    /// Whether anything was changed.
    pub fn any(&self) -> bool {
        0 < self.0.lock().count
    }

    /// Whether the outcome of a change is unknown.
    pub fn is_unknown(&self) -> bool {
        self.0.lock().unknown.is_some()
    }

    /// The changes so far, as a sentence. `None` if nothing was, and no outcome is unknown.
    pub fn summary(&self) -> Option<String> {
        let made = self.0.lock();
        let unknown = made.unknown.as_ref().map(|what| format!("nobody knows whether it {what}"));
        let count = match made.count {
            0 => return unknown,
            1 => format!("before that, the traversal {}", made.first.join(", ")),
            count => {
                let rest = count - made.first.len() as u64;
                let rest = if rest == 0 { String::new() } else { format!(", and {rest} more") };
                format!("before that, the traversal made {count} changes: it {}{rest}", made.first.join(", "))
            }
        };
        Some(unknown.map_or(count.clone(), |unknown| format!("{unknown}; {count}")))
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
    }
}
