//! Points in time: their ISO 8601 texts as Java writes them, and their parts as GraphBinary has them.

use super::Value;
use crate::error::{GremlinError, Result};
use chrono::{
    DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc,
};
use std::fmt::Write;

/// Dates lie within this many years of the year 0. Beyond, additions would soon leave what can be computed with.
pub const YEAR_MAX: i32 = 200_000;

/// The distance from UTC is at most 18 hours, as in Java.
const OFFSET_SECONDS_MAX: i32 = 18 * 3_600;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

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
        let is_offset = offset_seconds.unsigned_abs() <= OFFSET_SECONDS_MAX.unsigned_abs();
        let offset = FixedOffset::east_opt(offset_seconds).filter(|_| is_offset)?;
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

/// The point in time that a text of ISO 8601 names: a date with or without a time, or a month. UTC if the text has no offset.
/// `None` if the text is no such time, has a leap second or lies beyond [`YEAR_MAX`].
pub fn parse_date_time(text: &str) -> Option<DateTime<FixedOffset>> {
    // Java appends the name of a time zone to the offset: `+02:00[Europe/Berlin]`.
    let text = text.split('[').next()?;
    let (date, clock) = match text.split_once(['T', 't']) {
        Some((date, clock)) => (date, Some(clock)),
        None => (text, None),
    };
    let date = NaiveDate::parse_from_str(date, "%Y-%m-%d")
        .or_else(|_| NaiveDate::parse_from_str(&format!("{date}-01"), "%Y-%m-%d"))
        .ok()?;
    let Some(clock) = clock else {
        return local(date, NaiveTime::MIN, 0);
    };
    let offset_begin = clock.find(['Z', 'z', '+', '-']).unwrap_or(clock.len());
    let (clock, offset) = clock.split_at(offset_begin);
    let clock = NaiveTime::parse_from_str(clock, "%H:%M:%S%.f")
        .or_else(|_| NaiveTime::parse_from_str(clock, "%H:%M"))
        .ok()?;
    local(date, clock, offset_seconds(offset)?)
}

fn local(date: NaiveDate, clock: NaiveTime, offset_seconds: i32) -> Option<DateTime<FixedOffset>> {
    let offset = FixedOffset::east_opt(offset_seconds)?;
    NaiveDateTime::new(date, clock).and_local_timezone(offset).single().filter(is_accepted)
}

/// The seconds of `Z`, `+02`, `+0200`, `+02:00` or `+02:00:00`.
fn offset_seconds(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1) {
        None | Some(("Z" | "z", "")) => return Some(0),
        Some(("+", digits)) => (1, digits),
        Some(("-", digits)) => (-1, digits),
        Some(_) => return None,
    };
    let digits = digits.replace(':', "");
    if !matches!(digits.len(), 2 | 4 | 6) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), |part| part.parse::<i32>().ok());
    let (hours, minutes, seconds) = (part(0)?, part(2)?, part(4)?);
    let is_valid = minutes < 60 && seconds < 60;
    let total = hours * 3_600 + minutes * 60 + seconds;
    (is_valid && total <= OFFSET_SECONDS_MAX).then_some(sign * total)
}

/// Java has no leap seconds.
fn is_accepted(time: &DateTime<FixedOffset>) -> bool {
    time.year().abs() <= YEAR_MAX && i64::from(time.nanosecond()) < NANOS_PER_SECOND
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
        for text in ["", "2023-13-02T00:00Z", "+262000-01-01T00:00Z", "2016-12-31T23:59:60Z", "é", "+", "+é"]
        {
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
    fn dates_have_many_forms() {
        let cases = [
            ("2018-03-22", "2018-03-22T00:00Z"),
            ("2018-03", "2018-03-01T00:00Z"),
            ("2018-03-22T00:35", "2018-03-22T00:35Z"),
            ("2018-03-22T00:35:44", "2018-03-22T00:35:44Z"),
            ("2018-03-22t00:35:44.741z", "2018-03-22T00:35:44.741Z"),
            ("2018-03-22T00:35:44.741+1600", "2018-03-22T00:35:44.741+16:00"),
            ("2018-03-22T00:35:44.741-16:00:30", "2018-03-22T00:35:44.741-16:00:30"),
            ("2018-03-22T00:35+02", "2018-03-22T00:35+02:00"),
        ];
        for (text, expected) in cases {
            assert_eq!(time(text), expected, "{text}");
        }
        let wrong = [
            "",
            "T",
            "2018",
            "2018-13-01",
            "2018-03-22T",
            "2018-03-22T25:00",
            "2018-03-22T00:35+2",
            "2018-03-22T00:35+é",
            "999999-01-01",
        ];
        for text in wrong {
            assert_eq!(parse_date_time(text), None, "{text}");
        }
    }
}
