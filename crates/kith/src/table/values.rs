//! Values by key, for people.

use super::{Side, plan, plural, table as rows};
use crate::reply::{Footer, FooterLine, KeyReply};

/// Longer values are cut: `kith get` prints one whole.
const VALUE_CHARACTERS_MAX: usize = 80;

/// A line a key.
pub fn table(keys: &[KeyReply]) -> String {
    let columns = [("key", Side::Left), ("state", Side::Left), ("value", Side::Left)];
    rows(&columns, keys.iter().map(row))
}

fn row(key: &KeyReply) -> Vec<String> {
    let name = key.key.as_str().map_or_else(|| key.key.to_string(), shown);
    vec![name, key.state.to_owned(), key.value.text().map(shown).unwrap_or_default()]
}

/// How many keys ended how, then the profile.
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

/// On one line, cut, without what a terminal would obey.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(VALUE_CHARACTERS_MAX).flat_map(visible).collect();
    if text.chars().nth(VALUE_CHARACTERS_MAX).is_some() {
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

    #[test]
    fn values_stay_on_their_line() {
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        let long = "é".repeat(VALUE_CHARACTERS_MAX + 1);
        assert_eq!(shown(&long), "é".repeat(VALUE_CHARACTERS_MAX) + "…");
    }
}
