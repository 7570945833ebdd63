//! Parses flags: the names of stores and graphs, delimiters, sizes and times.

use kith_types::check_store_name;
use std::time::Duration;

/// Parses the name of a store. The rule is that of graphs, because a graph is a store.
pub fn store_name(text: &str) -> Result<String, String> {
    name(text, "store")
}

/// Parses the name of a graph: `[a-z0-9][a-z0-9._-]{0,62}`.
pub fn graph_name(text: &str) -> Result<String, String> {
    name(text, "graph")
}

fn name(text: &str, what: &str) -> Result<String, String> {
    check_store_name(text).map_err(|error| format!("a {what}'s name is {}", error.rule))?;
    Ok(text.to_owned())
}

/// Parses a delimiter: a character, or `tab`, `comma`, `semicolon`, `pipe`, `space`.
pub fn delimiter(text: &str) -> Result<u8, String> {
    let named = [
        ("tab", b'\t'),
        ("\\t", b'\t'),
        ("comma", b','),
        ("semicolon", b';'),
        ("pipe", b'|'),
        ("space", b' '),
    ];
    if let Some((_, byte)) = named.iter().find(|(name, _)| *name == text) {
        return Ok(*byte);
    }
    match text.as_bytes() {
        [byte]
            if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\n' | b'\r') =>
        {
            Ok(*byte)
        }
        _ => {
            Err("expected a character that no value contains, or tab, comma, semicolon, pipe or space"
                .to_owned())
        }
    }
}

/// Parses a number above 0, such as `0.5`.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && 0.0 < *number);
    number.ok_or_else(|| format!("{text:?} is not a number above 0"))
}

/// Parses a rate in bytes per second, such as `10MiB/s`.
pub fn rate(text: &str) -> Result<u64, String> {
    match size(text.strip_suffix("/s").unwrap_or(text)) {
        Ok(0) => Err("a rate must be more than 0".to_owned()),
        Ok(bytes) => Ok(bytes as u64),
        Err(_) => Err("expected bytes per second, such as 10MiB/s".to_owned()),
    }
}

/// Parses the time that a push waits for nodes, in milliseconds. Routers allow at most an hour.
pub fn node_wait(text: &str) -> Result<u64, String> {
    let most = 3_600_000;
    match milliseconds(text)? {
        millis if millis <= most => Ok(millis),
        _ => Err("a push waits an hour at most: give at most 1h, or leave nodes out with --allow-missing"
            .to_owned()),
    }
}

/// Parses a time of at most an hour.
pub fn duration(text: &str) -> Result<Duration, String> {
    match milliseconds(text)? {
        millis if millis <= 3_600_000 => Ok(Duration::from_millis(millis)),
        _ => Err("expected at most 1h".to_owned()),
    }
}

/// Parses a time in milliseconds, such as `500ms`, `30s`, `5m`, `1h` or `0`.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let zero = (text == "0").then_some(("0", 1));
    let split =
        zero.or_else(|| units.iter().find_map(|(unit, millis)| Some((text.strip_suffix(unit)?, *millis))));
    let millis = split.and_then(|(number, millis)| number.parse::<u64>().ok()?.checked_mul(millis));
    millis.ok_or_else(|| "expected a whole number with ms, s, m or h, such as 30s, or 0".to_owned())
}

/// Parses a number of bytes, such as `512MiB`, `2GiB` or a plain number.
pub fn size(text: &str) -> Result<usize, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("K", 10), ("M", 20), ("G", 30)];
    let (number, shift) =
        units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift))).unwrap_or((text, 0));
    let bytes = number.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a number of bytes, or a number with KiB, MiB or GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_safe_as_folders_are_taken() {
        for good in ["v", "kith-village", "0", "a.b_c-d", &"x".repeat(63)] {
            assert_eq!(graph_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "V", ".hidden", "..", "-v", "_v", "a/b", "a b", "é", &"x".repeat(64)] {
            assert!(graph_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn delimiters_have_names() {
        let given = ["tab", "\\t", "\t", "pipe", "|", ",", "space"].map(|text| delimiter(text).unwrap());
        assert_eq!(given, *b"\t\t\t||, ");
        for bad in ["", "1", "x", "\"", "::", "é"] {
            assert!(delimiter(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        let given = ["4096", "1KiB", "512MiB", "2G", "3 GiB"].map(|text| size(text).unwrap());
        assert_eq!(given, [4096, 1 << 10, 512 << 20, 2 << 30, 3 << 30]);
        for bad in ["", "MiB", "-1", "1TB", "99999999999999999999", "99999999999GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_units_and_an_end() {
        let given = ["0", "0s", "500ms", "30s", "5m", "1h"].map(|text| node_wait(text).unwrap());
        assert_eq!(given, [0, 0, 500, 30_000, 300_000, 3_600_000]);
        for bad in ["", "30", "s", "-1s", "1.5s", "1d", "99999999999999999999s", "18446744073709551615h"] {
            assert!(node_wait(bad).unwrap_err().contains("a whole number with"), "{bad}");
        }
        assert!(node_wait("61m").unwrap_err().contains("an hour at most"));
    }
}
