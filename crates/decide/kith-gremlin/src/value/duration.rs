//! Durations: their ISO 8601 texts as Java writes them.

use super::Value;
use regex::Regex;
use std::{fmt::Write, sync::LazyLock};

const NANOS_PER_SECOND: i128 = 1_000_000_000;

static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "^([-+]?)P(?:([-+]?[0-9]+)D)?(?:T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?\
        (?:([-+]?)([0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?$";
    Regex::new(pattern).expect("the pattern is well-formed")
});

/// As Java writes it: `PT8H6M12.345S`.
pub fn text(seconds: i64, nanos: u32) -> String {
    if seconds == 0 && nanos == 0 {
        return "PT0S".to_owned();
    }
    // A fraction of a second before zero: -1.5 s has -2 seconds and half a billion nanoseconds.
    let is_fraction_below_zero = seconds < 0 && 0 < nanos;
    let whole = if is_fraction_below_zero { seconds + 1 } else { seconds };
    let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60);
    let mut text = "PT".to_owned();
    // Writing to a string does not fail.
    for (count, unit) in [(hours, 'H'), (minutes, 'M')] {
        let _ = if count == 0 { Ok(()) } else { write!(text, "{count}{unit}") };
    }
    if rest == 0 && nanos == 0 {
        return text;
    }
    let sign = if is_fraction_below_zero && rest == 0 { "-" } else { "" };
    let _ = write!(text, "{sign}{rest}");
    if 0 < nanos {
        let fraction = if is_fraction_below_zero { 1_000_000_000 - nanos } else { nanos };
        let fraction = format!("{fraction:09}");
        let _ = write!(text, ".{}", fraction.trim_end_matches('0'));
    }
    text.push('S');
    text
}

/// The seconds and nanoseconds of a duration that ISO 8601 writes so, without years and months. `None` if the text is no such
/// duration.
pub fn parse(text: &str) -> Option<Value> {
    let parts = DURATION.captures(text)?;
    if text.ends_with(['P', 'T']) {
        return None;
    }
    let number = |index: usize| match parts.get(index) {
        Some(part) => part.as_str().parse::<i128>().ok().filter(|number| number.unsigned_abs() < 1 << 63),
        None => Some(0),
    };
    let fraction = parts.get(7).map_or("", |fraction| fraction.as_str());
    let nanos: i128 = format!("{fraction:0<9}").parse().ok()?;
    let part_sign = if parts.get(5).is_some_and(|sign| sign.as_str() == "-") { -1 } else { 1 };
    let seconds = number(2)? * 86_400 + number(3)? * 3_600 + number(4)? * 60;
    let total = seconds * NANOS_PER_SECOND + part_sign * (number(6)? * NANOS_PER_SECOND + nanos);
    let total = if &parts[1] == "-" { -total } else { total };
    let seconds = i64::try_from(total.div_euclid(NANOS_PER_SECOND)).ok()?;
    Some(Value::Duration { seconds, nanos: u32::try_from(total.rem_euclid(NANOS_PER_SECOND)).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_look_as_in_java() {
        let cases = [
            ("PT0S", "PT0S"),
            ("PT8H6M12.345S", "PT8H6M12.345S"),
            ("P2DT3M", "PT48H3M"),
            ("PT-0.5S", "PT-0.5S"),
            ("-PT1M1.5S", "PT-1M-1.5S"),
            ("PT-1M", "PT-1M"),
        ];
        for (written, expected) in cases {
            assert_eq!(parse(written).expect("a duration").to_string(), expected);
        }
        for wrong in ["", "P", "PT", "P1Y", "PT1", "1S", "PT99999999999999999999H", "PT9223372036854775807H"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert!(text(i64::MIN, 999_999_999).starts_with("PT-"));
    }
}
