//! The difference of two pages, line by line.

/// The number of unchanged lines that are shown around a change.
const CONTEXT: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Same(usize),
    Gone(usize),
    New(usize),
}

/// Returns the lines that differ, with a few lines around them. Removed lines have `-` and their number in the old
/// page; added lines have `+`. The result is empty if nothing differs. O(old × new).
pub fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let changes = changes(&old, &new);
    let differs: Vec<usize> =
        (0..changes.len()).filter(|at| !matches!(changes[*at], Change::Same(_))).collect();
    let is_near = |at: usize| differs.iter().any(|other| at.abs_diff(*other) <= CONTEXT);
    let mut text = String::new();
    let mut is_cut = false;
    for (at, change) in changes.iter().enumerate() {
        if !is_near(at) {
            is_cut = true;
            continue;
        }
        if std::mem::take(&mut is_cut) {
            text += "     …\n";
        }
        text += &match *change {
            Change::Same(line) => format!("{:5}   {}\n", line + 1, old[line]),
            Change::Gone(line) => format!("{:5} - {}\n", line + 1, old[line]),
            Change::New(line) => format!("      + {}\n", new[line]),
        };
    }
    text
}

/// Returns a longest common subsequence and the changes around it.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let mut common = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for to in (0..new.len()).rev() {
            common[at][to] = match old[at] == new[to] {
                true => common[at + 1][to + 1] + 1,
                false => common[at + 1][to].max(common[at][to + 1]),
            };
        }
    }
    let (mut at, mut to) = (0, 0);
    let mut changes = Vec::new();
    while at < old.len() || to < new.len() {
        if at < old.len() && to < new.len() && old[at] == new[to] {
            changes.push(Change::Same(at));
            (at, to) = (at + 1, to + 1);
        } else if to == new.len() || at < old.len() && common[at][to + 1] <= common[at + 1][to] {
            changes.push(Change::Gone(at));
            at += 1;
        } else {
            changes.push(Change::New(to));
            to += 1;
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_shown_with_those_around_them() {
        let old = "a\nb\nc\nd\ne\nf\ng\n";
        let new = "a\nb\nc\nD\nE\ne\nf\ng\n";
        let expected =
            "     …\n    2   b\n    3   c\n    4 - d\n      + D\n      + E\n    5   e\n    6   f\n";
        assert_eq!(difference(old, new), expected);
        assert_eq!(difference(old, old), "");
    }

    #[test]
    fn lines_at_either_end_are_shown_too() {
        assert_eq!(difference("a\n", "b\na\n"), "      + b\n    1   a\n");
        assert_eq!(difference("a\nb\n", "a\n"), "    1   a\n    2 - b\n");
        assert_eq!(difference("", "a\n"), "      + a\n");
    }
}
