//! Parsers for the words of commands.

use std::time::Duration;

/// Parses a number, such as `10`.
///
/// # Errors
/// If the word is not a number.
pub fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word:?} is not a number"))
}

/// Parses a number with a letter in front of it, such as `n3` or `p12`.
///
/// # Errors
/// If the word is not `prefix` followed by a number.
pub fn numbered(word: &str, prefix: &str) -> Result<u32, String> {
    let digits = word.strip_prefix(prefix).filter(|digits| !digits.is_empty());
    let value = digits.and_then(|digits| digits.parse().ok());
    value.ok_or_else(|| format!("{word:?} is not {prefix:?} and a number"))
}

/// Parses partitions, in order: `p3`, and ranges that include both ends, `p0..p7`. A partition that is named twice is
/// returned twice.
///
/// # Errors
/// If a word is neither of these, or a range is empty.
pub fn partitions(words: &[&str]) -> Result<Vec<u32>, String> {
    let mut named = Vec::new();
    for word in words {
        let (first, last) = word.split_once("..").unwrap_or((word, word));
        let (first, last) = (numbered(first, "p")?, numbered(last, "p")?);
        if last < first {
            return Err(format!("{word:?} is an empty range"));
        }
        named.extend(first..=last);
    }
    Ok(named)
}

/// Parses a time, such as `30ms`, `5s` or `2min`.
///
/// # Errors
/// If the word is not a time.
pub fn duration(word: &str) -> Result<Duration, String> {
    let split = word.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(word.len());
    let unit = match &word[split..] {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        _ => return Err(format!("{word:?} is not a time: write 30ms, 5s or 2min")),
    };
    Ok(Duration::from_millis(number(&word[..split])? * unit))
}

/// Formats a time as scripts write it.
pub fn millis(time: Duration) -> String {
    match time.as_millis() {
        millis if millis % 60_000 == 0 && 0 < millis => format!("{}min", millis / 60_000),
        millis if millis % 1_000 == 0 && 0 < millis => format!("{}s", millis / 1_000),
        millis => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_nonsense_is_refused() {
        assert_eq!(number("10"), Ok(10));
        assert_eq!(numbered("n3", "n"), Ok(3));
        assert_eq!(partitions(&["p2", "p0..p1", "p2"]), Ok(vec![2, 0, 1, 2]));
        for time in ["30ms", "5s", "2min", "0ms", "61s"] {
            assert_eq!(duration(time).map(millis), Ok(time.to_owned()));
        }
        assert!(number("ten").is_err() && duration("30").is_err() && duration("ms").is_err());
        assert!(numbered("n", "n").is_err() && numbered("p3", "n").is_err());
        assert!(partitions(&["p3..p1"]).is_err() && partitions(&["3"]).is_err());
    }
}
