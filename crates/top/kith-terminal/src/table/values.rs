//! Values by key, as text for people.

use super::{Side, plan, plural, table as rows};
use crate::reply::{Footer, FooterLine, KeyReply, reason};
use serde_json::Value;
use std::io::{self, IsTerminal};

/// The maximum length of a value on a terminal. Longer values are truncated there; `kith get` prints a whole value.
const VALUE_CHARACTERS_MAX: usize = 80;

/// Returns one line per key: its value or its state, and the reason if the key failed.
pub fn table(keys: &[KeyReply]) -> String {
    let lines = keys.iter().map(|key| KeyLine {
        key: &key.key,
        state: key.state,
        value: key.value.text(),
        reason: reason(key.state, key.error.as_ref()),
    });
    key_lines("value", lines)
}

/// One line of the table: the result for a key.
pub(super) struct KeyLine<'a> {
    pub key: &'a Value,
    pub state: &'a str,
    pub value: Option<&'a str>,
    /// The reason why the key is neither found nor absent.
    pub reason: Option<&'a str>,
}

/// Returns one line per key, with a column of reasons if a key failed.
pub(super) fn key_lines<'a>(value: &str, keys: impl Iterator<Item = KeyLine<'a>>) -> String {
    let keys: Vec<KeyLine<'_>> = keys.collect();
    let columns = [("key", Side::Left), ("state", Side::Left), (value, Side::Left), ("reason", Side::Left)];
    let columns = &columns[..if keys.iter().any(|key| key.reason.is_some()) { 4 } else { 3 }];
    let cells = |key: &KeyLine<'_>| {
        let value = key.value.map(shown).unwrap_or_default();
        let mut cells =
            vec![name(key.key), key.state.to_owned(), value, key.reason.unwrap_or_default().to_owned()];
        cells.truncate(columns.len());
        cells
    };
    rows(columns, keys.iter().map(cells))
}

/// Returns text unchanged, and any other value as JSON.
pub(super) fn name(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), shown)
}

/// Returns the number of keys in each state, followed by the profile.
pub fn footer(last: &FooterLine) -> String {
    let Footer { found, absent, error, unanswered, versions } = &last.footer;
    let versions: Vec<String> = versions.iter().map(u64::to_string).collect();
    let keys = plural(found + absent + error + unanswered, "key");
    let profile = last.profile.as_ref().map(|profile| format!("\n{}", plan::render(profile)));
    format!(
        "{keys}: {found} found, {absent} absent, {error} failed, {unanswered} unanswered; version {}\n{}",
        versions.join(", "),
        profile.unwrap_or_default()
    )
}

/// Returns the text on one line, with control characters escaped. On a terminal, a long text is cut; a program that reads
/// the output gets all of it.
pub(super) fn shown(text: &str) -> String {
    one_line(text, if io::stdout().is_terminal() { VALUE_CHARACTERS_MAX } else { usize::MAX })
}

fn one_line(text: &str, characters_max: usize) -> String {
    let mut shown: String = text.chars().take(characters_max).flat_map(visible).collect();
    if text.chars().nth(characters_max).is_some() {
        shown.push('…');
    }
    shown
}

fn visible(character: char) -> Vec<char> {
    if character.is_control() { character.escape_default().collect() } else { vec![character] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Values;
    use kith_operators::{Record, RecordError};
    use kith_schema::ValueType;

    #[test]
    fn the_reason_stands_beside_each_key_that_failed() {
        let values = Values { store: "s", value: ValueType::Text, schema: None };
        let key = |name: &str, record| KeyReply::new(&values, Value::from(name), record);
        let good = key("a", Record::Found(b"1"));
        assert_eq!(table(std::slice::from_ref(&good)), "key  state  value\na    FOUND  1\n");
        let text =
            table(&[good, key("b", Record::Error(RecordError::Damaged)), key("c", Record::Unanswered)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("value  reason"), "{text}");
        assert!(lines[2].contains("damaged on every replica") && lines[2].contains("its checksum"), "{text}");
        assert!(lines[3].ends_with("no replica of its partition answered in time"), "{text}");
    }

    #[test]
    fn values_stay_on_their_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m", usize::MAX), "a\\nb\\u{1b}[31m");
        let long = "é".repeat(VALUE_CHARACTERS_MAX + 1);
        assert_eq!(one_line(&long, VALUE_CHARACTERS_MAX), "é".repeat(VALUE_CHARACTERS_MAX) + "…");
        assert_eq!(one_line(&long, usize::MAX), long);
    }
}
