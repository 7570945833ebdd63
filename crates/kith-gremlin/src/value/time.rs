//! Points in time and durations: their ISO 8601 texts as Java writes them, and their parts as GraphBinary has them.

use super::Value;
use crate::error::{GremlinError, Result};
use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, TimeDelta, Timelike, Utc};
use regex::Regex;
use std::{fmt::Write, sync::LazyLock};

/// Dates lie within this many years of the year 0. Beyond, additions would soon leave what can be computed with.
pub const YEAR_MAX: i32 = 200_000;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "^([-+]?)P(?:([-+]?[0-9]+)D)?(?:T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?\
        (?:([-+]?)([0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?$";
    Regex::new(pattern).expect("the pattern is well-formed")
});

/// A point in time from its local date, the nanoseconds since midnight, and its distance from UTC in seconds.
///
/// # Errors
///
/// There is no such date, or it lies beyond [`YEAR_MAX`].
pub fn date_time(date: (i32, u8, u8), nanos_of_day: i64, offset_seconds: i32) -> Result<Value> {
    let (year, month, day) = date;
    let built = || {
        let midnight = NaiveDate::from_ymd_opt(year, month.into(), day.into())?.and_hms_opt(0, 0, 0)?;
        let is_within_day = (0..SECONDS_PER_DAY * NANOS_PER_SECOND).contains(&nanos_of_day);
        let local = midnight.checked_add_signed(TimeDelta::nanoseconds(nanos_of_day))?;
        let offset = FixedOffset::east_opt(offset_seconds)?;
        let time = local.and_local_timezone(offset).single()?;
        (is_within_day && year.abs() <= YEAR_MAX).then_some(time)
    };
    built().map(Value::DateTime).ok_or_else(|| {
        GremlinError::bad(format!(
            "there is no point in time with year {year}, month {month}, day {day}, {nanos_of_day} ns of the day and \
             {offset_seconds} s from UTC; years up to {YEAR_MAX} are accepted"
        ))
    })
}

/// A point in time from the seconds and nanoseconds since 1970 in UTC.
///
/// # Errors
///
/// It lies beyond [`YEAR_MAX`].
pub fn instant(seconds: i64, nanos: u32) -> Result<Value> {
    let time = DateTime::<Utc>::from_timestamp(seconds, nanos).map(|time| time.fixed_offset());
    let time = time.filter(is_accepted).map(Value::DateTime);
    time.ok_or_else(|| {
        GremlinError::bad(format!(
            "{seconds} s and {nanos} ns since 1970 is no point in time; years up to {YEAR_MAX} are accepted"
        ))
    })
}

/// A point in time from milliseconds since 1970 in UTC. Errors are those of [`instant`].
pub fn instant_of_millis(millis: i64) -> Result<Value> {
    let nanos = u32::try_from(millis.rem_euclid(1_000) * 1_000_000).unwrap_or_default();
    instant(millis.div_euclid(1_000), nanos)
}

/// The nanoseconds since midnight, local time.
pub fn nanos_of_day(time: &DateTime<FixedOffset>) -> i64 {
    // chrono gives leap seconds a second second's worth of nanoseconds; Java has no leap seconds.
    let nanos = time.nanosecond().min(999_999_999);
    i64::from(time.num_seconds_from_midnight()) * NANOS_PER_SECOND + i64::from(nanos)
}

/// As Java writes it: `2023-08-02T00:00Z`, `2023-08-02T10:15:30.500+02:00`.
pub fn date_time_text(time: &DateTime<FixedOffset>) -> String {
    let year = time.year();
    let plus = if 9_999 < year { "+" } else { "" };
    let width = if year < 0 { 5 } else { 4 };
    let mut text = format!("{plus}{year:0width$}-{:02}-{:02}", time.month(), time.day());
    // Writing to a string does not fail.
    let _ = write!(text, "T{:02}:{:02}", time.hour(), time.minute());
    let nanos = time.nanosecond().min(999_999_999);
    if 0 < time.second() || 0 < nanos {
        let _ = write!(text, ":{:02}", time.second());
    }
    let _ = match nanos {
        0 => Ok(()),
        nanos if nanos % 1_000_000 == 0 => write!(text, ".{:03}", nanos / 1_000_000),
        nanos if nanos % 1_000 == 0 => write!(text, ".{:06}", nanos / 1_000),
        nanos => write!(text, ".{nanos:09}"),
    };
    let offset = time.offset().local_minus_utc();
    let (hours, minutes, seconds) = (offset.abs() / 3_600, offset.abs() / 60 % 60, offset.abs() % 60);
    let sign = if offset < 0 { '-' } else { '+' };
    let _ = match (offset, seconds) {
        (0, _) => write!(text, "Z"),
        (_, 0) => write!(text, "{sign}{hours:02}:{minutes:02}"),
        _ => write!(text, "{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    };
    text
}

/// The point in time that ISO 8601 writes so, with an offset from UTC; seconds may be absent. `None` if the text is no such
/// time, has a leap second or lies beyond [`YEAR_MAX`].
pub fn parse_date_time(text: &str) -> Option<DateTime<FixedOffset>> {
    // Java appends the name of a time zone to the offset: `+02:00[Europe/Berlin]`.
    let text = text.split('[').next()?;
    let (local, offset) = match text.strip_suffix(['Z', 'z']) {
        Some(local) => (local, 0),
        None => {
            let sign = text.rfind(['+', '-'])?;
            (&text[..sign], parse_offset(&text[sign..])?)
        }
    };
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
    let local = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(local, format).ok())?;
    let time = local.and_local_timezone(FixedOffset::east_opt(offset)?).single();
    time.filter(is_accepted)
}

/// The seconds of `+01:00` or `-01:00:30`.
fn parse_offset(text: &str) -> Option<i32> {
    let digits = text.get(1..)?;
    let mut parts = digits.split(':').map(|part| part.parse::<u8>().ok().filter(|_| part.len() == 2));
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let is_regular = parts.next().is_none() && minutes < 60 && seconds < 60;
    let total = i32::from(hours) * 3_600 + i32::from(minutes) * 60 + i32::from(seconds);
    is_regular.then_some(if text.starts_with('-') { -total } else { total })
}

/// Java has no leap seconds.
fn is_accepted(time: &DateTime<FixedOffset>) -> bool {
    time.year().abs() <= YEAR_MAX && i64::from(time.nanosecond()) < NANOS_PER_SECOND
}

/// As Java writes it: `PT8H6M12.345S`.
pub fn duration_text(seconds: i64, nanos: u32) -> String {
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
pub fn parse_duration(text: &str) -> Option<Value> {
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
    let per_second = i128::from(NANOS_PER_SECOND);
    let seconds = number(2)? * 86_400 + number(3)? * 3_600 + number(4)? * 60;
    let total = seconds * per_second + part_sign * (number(6)? * per_second + nanos);
    let total = if &parts[1] == "-" { -total } else { total };
    let seconds = i64::try_from(total.div_euclid(per_second)).ok()?;
    Some(Value::Duration { seconds, nanos: u32::try_from(total.rem_euclid(per_second)).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> String {
        parse_date_time(text).map_or_else(|| "none".to_owned(), |time| date_time_text(&time))
    }

    #[test]
    fn times_look_as_in_java() {
        for text in [
            "2023-08-02T00:00Z",
            "2023-08-02T10:15:30Z",
            "2023-08-02T10:15:30.500+02:00",
            "0001-01-01T00:00:00.000001-11:30",
            "+12023-08-02T00:00Z",
            "-0005-08-02T00:00+01:02:03",
        ] {
            assert_eq!(time(text), text);
        }
        assert_eq!(
            time("2016-12-23T12:12:24.000000036+02:00[GMT+02:00]"),
            "2016-12-23T12:12:24.000000036+02:00"
        );
        for text in [
            "",
            "2023-08-02",
            "2023-13-02T00:00Z",
            "+262000-01-01T00:00Z",
            "2016-12-31T23:59:60Z",
            "é",
            "+",
            "+é",
        ] {
            assert_eq!(time(text), "none", "{text}");
        }
    }

    #[test]
    fn parts_make_a_time() {
        let value = date_time((2023, 8, 2), 36_930 * NANOS_PER_SECOND, 7_200).expect("a time");
        assert_eq!(value.to_string(), "2023-08-02T10:15:30+02:00");
        assert_eq!(instant_of_millis(-1).expect("a time").to_string(), "1969-12-31T23:59:59.999Z");
        assert!(date_time((2023, 2, 30), 0, 0).is_err());
        assert!(date_time((2023, 2, 3), -1, 0).is_err());
        assert!(date_time((2023, 2, 3), 0, i32::MIN).is_err());
        assert!(date_time((i32::MIN, 2, 3), 0, 0).is_err());
        assert!(instant(i64::MAX, u32::MAX).is_err());
    }

    #[test]
    fn durations_look_as_in_java() {
        let texts = [
            ("PT0S", "PT0S"),
            ("PT8H6M12.345S", "PT8H6M12.345S"),
            ("P2DT3M", "PT48H3M"),
            ("PT-0.5S", "PT-0.5S"),
            ("-PT1M1.5S", "PT-1M-1.5S"),
            ("PT-1M", "PT-1M"),
        ];
        for (text, expected) in texts {
            assert_eq!(parse_duration(text).expect("a duration").to_string(), expected);
        }
        for text in ["", "P", "PT", "P1Y", "PT1", "1S", "PT99999999999999999999H", "PT9223372036854775807H"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        assert!(duration_text(i64::MIN, 999_999_999).starts_with("PT-"));
    }
}
