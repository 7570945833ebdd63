//! Times as texts, and the units of times that are plain numbers.

use chrono::{DateTime, NaiveDate};

/// The milliseconds since 1970 of a date (its midnight UTC) or of RFC 3339, in which offsets may also be written as `+01` and
/// `+0100`; `None` if the text is neither.
pub fn time_of_text(text: &str) -> Option<i64> {
    if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Some(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis());
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_millis());
    }
    let (time, offset) = text.split_at_checked(text.rfind(['+', '-'])?)?;
    let offset = match offset.len() {
        3 => format!("{offset}:00"),
        5 => format!("{}:{}", offset.get(..3)?, offset.get(3..)?),
        _ => return None,
    };
    DateTime::parse_from_rfc3339(&format!("{time}{offset}")).ok().map(|time| time.timestamp_millis())
}

/// A time in milliseconds since 1970 as RFC 3339 in UTC; `None` for one outside of the years 0 to 9999, which RFC 3339 cannot
/// write.
pub fn text_of_time(millis: i64) -> Option<String> {
    const YEARS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;
    let time = DateTime::from_timestamp_millis(millis).filter(|_| YEARS.contains(&millis))?;
    let whole = millis.rem_euclid(1_000) == 0;
    Some(time.format(if whole { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%.3fZ" }).to_string())
}

/// The unit of times that are plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Milliseconds, as they are stored.
    #[default]
    Millis,
    /// Seconds.
    Seconds,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl TimeUnit {
    /// The unit that a kind of columns names, as in `since:time-s`.
    pub fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "time" => Some(TimeUnit::Millis),
            "time-s" => Some(TimeUnit::Seconds),
            "time-us" => Some(TimeUnit::Micros),
            "time-ns" => Some(TimeUnit::Nanos),
            _ => None,
        }
    }

    /// A number in this unit in milliseconds, rounded down; `None` if it is out of range.
    pub fn millis(self, number: i128) -> Option<i128> {
        match self {
            TimeUnit::Millis => Some(number),
            TimeUnit::Seconds => number.checked_mul(1_000),
            TimeUnit::Micros => Some(number.div_euclid(1_000)),
            TimeUnit::Nanos => Some(number.div_euclid(1_000_000)),
        }
    }

    /// The message about a number that is unlikely to be a time in milliseconds, because it would be before 1973 or after
    /// 2200. `advice` gets the kind that names its probable unit.
    pub fn doubt(column: &str, number: i128, advice: impl FnOnce(&str) -> String) -> Option<String> {
        let (unit, kind) = match number {
            100_000_000..100_000_000_000 => ("seconds", "time-s"),
            7_258_118_400_000..100_000_000_000_000_000 => ("microseconds", "time-us"),
            100_000_000_000_000_000.. => ("nanoseconds", "time-ns"),
            _ => return None,
        };
        let millis = i64::try_from(number).ok().and_then(DateTime::from_timestamp_millis);
        let date = millis
            .map_or("a time that is out of range".to_owned(), |time| time.format("%Y-%m-%d").to_string());
        Some(format!("{column} {number} is {date} in milliseconds; if it is in {unit}, {}", advice(kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_read() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_766_000_000_500, "2025-12-17T19:33:20.500Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(text_of_time(millis).as_deref(), Some(text));
            assert_eq!(time_of_text(text), Some(millis));
        }
        for millis in [i64::MIN, -62_167_219_200_001, 253_402_300_800_000, i64::MAX] {
            assert_eq!(text_of_time(millis), None, "{millis}");
        }
    }

    #[test]
    fn every_unit_is_converted_or_refused_at_its_extremes() {
        for (unit, factor) in [(TimeUnit::Millis, 1_000), (TimeUnit::Micros, 1), (TimeUnit::Nanos, 0)] {
            for number in [i64::MIN, -1_001, -1, 0, 1, 999, 1_000_000, i64::MAX].map(i128::from) {
                let nanos = number * if factor == 0 { 1 } else { factor * 1_000 };
                assert_eq!(unit.millis(number), Some(nanos.div_euclid(1_000_000)), "{unit:?} {number}");
            }
        }
        assert_eq!(TimeUnit::Seconds.millis(u64::MAX.into()), Some(i128::from(u64::MAX) * 1_000));
        assert_eq!(TimeUnit::Seconds.millis(i128::MAX), None);
    }

    #[test]
    fn numbers_that_are_unlikely_to_be_milliseconds_are_doubted() {
        let doubt = |number| TimeUnit::doubt("since", number, |kind| format!("use --times since:{kind}"));
        assert_eq!(
            doubt(1_700_000_000).as_deref(),
            Some(
                "since 1700000000 is 1970-01-20 in milliseconds; if it is in seconds, use --times since:time-s"
            )
        );
        assert!(doubt(1_700_000_000_000_000).is_some_and(|text| text.ends_with("since:time-us")));
        assert!(doubt(1_700_000_000_000_000_000).is_some_and(|text| text.ends_with("since:time-ns")));
        assert!(doubt(u64::MAX.into()).is_some_and(|text| text.contains("out of range")));
        assert_eq!([doubt(1_700_000_000_000), doubt(0), doubt(-1)], [None, None, None]);
    }
}
