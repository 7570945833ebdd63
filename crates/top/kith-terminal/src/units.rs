//! Formats numbers for people.

use chrono::DateTime;

/// Formats a number with separators: `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with a noun: `1 node`, `2 nodes`.
pub fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Formats microseconds, in the largest unit in which the number is at least 1.
pub fn micros(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{:.2} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

/// Formats bytes, in powers of 1,024.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut value = number as f64 / 1024.0;
    let mut unit = 0;
    while 1024.0 <= value && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Formats milliseconds since 1970 as a date in UTC, to the second.
pub fn date(ms: u64) -> String {
    let date = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis);
    date.map_or_else(|| ms.to_string(), |date| date.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Formats a time of data, with its milliseconds if it has any.
pub fn time(ms: u64) -> String {
    match i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis) {
        Some(time) if !ms.is_multiple_of(1_000) => time.format("%Y-%m-%d %H:%M:%S%.3f UTC").to_string(),
        _ => date(ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_and_those_beyond_the_calendar_numbers() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(1_795_248_213_784), "2026-11-21 08:03:33 UTC");
        assert_eq!(date(u64::MAX), u64::MAX.to_string());
        assert_eq!(time(1_795_248_213_784), "2026-11-21 08:03:33.784 UTC");
        assert_eq!([time(0), time(u64::MAX)], [date(0), date(u64::MAX)]);
    }

    #[test]
    fn numbers_are_grouped_and_scaled() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([plural(1, "node"), plural(2, "node")], ["1 node", "2 nodes"]);
        assert_eq!([999, 1_500, 2_000_000].map(micros), ["999 us", "1.50 ms", "2.00 s"]);
        assert_eq!([1023, 1024, 5 << 20].map(bytes), ["1023 B", "1.0 KiB", "5.0 MiB"]);
    }
}
