//! Text that fits the width of a terminal. What is piped is never shortened.

use super::{Side, table};
use console::Term;

/// The width at which text is wrapped that goes to a pipe or a wide terminal.
const TEXT_CHARS: usize = 100;

/// The columns of the terminal that standard output goes to; `None` if it goes to a pipe or a file.
pub fn screen_width() -> Option<usize> {
    let terminal = Term::stdout();
    terminal.is_term().then(|| usize::from(terminal.size().1))
}

/// Returns a table that is at most `width` wide: columns are left out in the order of `less_important` until it fits, and
/// what is too wide even then is cut. Names the columns that it has left out.
pub fn fitted(
    columns: &[(&str, Side)],
    rows: Vec<Vec<String>>,
    less_important: &[&str],
    width: Option<usize>,
) -> (String, Vec<String>) {
    let (mut columns, mut rows) = (columns.to_vec(), rows);
    let (mut spare, mut left_out) = (less_important.iter(), Vec::new());
    loop {
        let text = table(&columns, rows.iter().cloned());
        let Some(width) = width else { return (text, left_out) };
        if text.lines().all(|line| line.chars().count() <= width) {
            return (text, left_out);
        }
        let Some(name) = spare.next() else { return (cut(&text, width), left_out) };
        if let Some(at) = columns.iter().position(|(column, _)| column == name) {
            columns.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
            left_out.push((*name).to_owned());
        }
    }
}

/// As [`fitted`]. Below the table, a line names the columns that were left out and says where they are.
pub fn fitted_with_note(
    columns: &[(&str, Side)],
    rows: Vec<Vec<String>>,
    less_important: &[&str],
    width: Option<usize>,
) -> String {
    match fitted(columns, rows, less_important, width) {
        (text, left_out) if left_out.is_empty() => text,
        (text, left_out) => {
            let note = format!("in a wider terminal or with -o json also: {}", left_out.join(", "));
            text + &wrapped(&note, width)
        }
    }
}

/// Cuts lines that are too long.
fn cut(text: &str, width: usize) -> String {
    let line = |line: &str| match line.chars().nth(width) {
        None => format!("{line}\n"),
        Some(_) => line.chars().take(width.saturating_sub(1)).chain("…\n".chars()).collect(),
    };
    text.lines().map(line).collect()
}

/// Breaks lines at spaces so that they fit a terminal of this width. The rest of a line is indented. Without a width, the text
/// stays as it is.
pub fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return if text.ends_with('\n') || text.is_empty() { text.to_owned() } else { format!("{text}\n") };
    };
    let mut out = String::new();
    for line in text.lines() {
        let mut length = 0;
        for (index, word) in line.split(' ').enumerate() {
            let more = word.chars().count() + usize::from(index != 0);
            if index != 0 && width < length + more {
                out += "\n  ";
                length = 1 + more;
            } else {
                out += if index == 0 { "" } else { " " };
                length += more;
            }
            out += word;
        }
        out.push('\n');
    }
    out
}

/// Returns words side by side, on lines that fit.
pub fn filled(words: impl IntoIterator<Item = String>, width: Option<usize>) -> String {
    let most = width.map_or(TEXT_CHARS, |width| width.min(TEXT_CHARS));
    let (mut text, mut length) = (String::new(), 0);
    for word in words {
        let more = word.chars().count();
        if length != 0 && most < length + 1 + more {
            text.push('\n');
            length = 0;
        }
        if length != 0 {
            text.push(' ');
            length += 1;
        }
        text += &word;
        length += more;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [(&str, Side); 3] =
        [("node", Side::Right), ("requests/s", Side::Right), ("serves", Side::Left)];

    fn rows() -> Vec<Vec<String>> {
        vec![vec!["1".to_owned(), "12".to_owned(), "a store with a long name".to_owned()]]
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_named_and_a_pipe_gets_all() {
        let (whole, left_out) = fitted(&COLUMNS, rows(), &["requests/s"], None);
        assert!(whole.contains("requests/s") && left_out.is_empty(), "{whole}");
        let table = fitted_with_note(&COLUMNS, rows(), &["requests/s"], Some(32));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "node  serves");
        assert_eq!(lines[1], "   1  a store with a long name");
        assert!(table.ends_with("requests/s\n") && lines.iter().all(|line| line.chars().count() <= 32));
        let (narrow, _) = fitted(&COLUMNS, rows(), &["requests/s"], Some(20));
        assert_eq!(narrow, "node  serves\n   1  a store with …\n");
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrapped("one two three four\nfive", Some(9)), "one two\n  three\n  four\nfive\n");
        assert_eq!(wrapped("one two three four", None), "one two three four\n");
        assert_eq!(wrapped("aaaaaaaaaaaa b", Some(5)), "aaaaaaaaaaaa\n  b\n");
        let words = || (100..130).map(|word: u32| word.to_string());
        assert!(filled(words(), Some(20)).lines().all(|line| line.len() <= 20));
        assert_eq!(filled(words(), None).lines().count(), 2);
        assert_eq!(filled([], None), "");
    }
}
