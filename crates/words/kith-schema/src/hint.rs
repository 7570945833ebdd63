//! Finds the word that was probably meant.

use strsim::damerau_levenshtein;

/// Longer words get no hint, because the search is quadratic in their length.
const WORD_BYTES_MAX: usize = 64;

/// The candidate nearest to `word`, if it is near enough to be a typing error: at most one edit in three characters,
/// ignoring case. The first one if several are equally near. `O(candidates × word²)`: for messages, not for loops.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if WORD_BYTES_MAX < word.len() {
        return None;
    }
    let lower = word.to_lowercase();
    let near = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= WORD_BYTES_MAX)
        .map(|candidate| (damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .min_by_key(|(distance, _)| *distance)?;
    let allowed = (lower.chars().count() / 3).max(1);
    (near.0 <= allowed && near.0 < lower.chars().count().max(1)).then(|| near.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        assert_eq!(nearest("titel", ["title", "score"]).as_deref(), Some("title"));
        assert_eq!(nearest("Title", ["title", "score"]).as_deref(), Some("title"));
        assert_eq!(nearest("color", ["title", "score"]), None);
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest("", ["y"]), None);
        assert_eq!(nearest(&"x".repeat(100), [&*"x".repeat(99)]), None);
    }
}
