//! Functions of dates.

use kith_gremlin::{
    Result,
    value::{DateUnit, Value, time},
};
use kith_traversal::functions::{as_date, date_add, date_diff};
use proptest::prelude::*;

fn date(text: &str) -> Value {
    Value::DateTime(time::parse_date_time(text).expect("a date"))
}

fn error(result: Result<Value>) -> String {
    result.expect_err("an error").message
}

#[test]
fn texts_and_whole_numbers_are_dates() {
    let cases = [
        ("2023-08-02T00:00:00-07:00".into(), "2023-08-02T00:00-07:00"),
        (Value::Long(1_694_017_708_000), "2023-09-06T16:28:28Z"),
        (Value::Int(-1), "1969-12-31T23:59:59.999Z"),
        (Value::BigInteger(std::sync::Arc::new(0.into())), "1970-01-01T00:00Z"),
        (date("2020-08-02"), "2020-08-02T00:00Z"),
    ];
    for (value, expected) in cases {
        assert_eq!(as_date(&value).map(|date| date.to_string()), Ok(expected.to_owned()), "{value}");
    }
    assert_eq!(error(as_date(&Value::Null)), "Can't parse null as DateTime.");
    assert_eq!(error(as_date(&1.5.into())), "Can't parse Double as DateTime.");
    assert_eq!(error(as_date(&"no date".into())), "Can't parse no date as DateTime.");
    assert!(as_date(&Value::Long(i64::MAX)).is_err());
}

#[test]
fn dates_move_by_units() {
    let from = date("2023-08-02");
    let cases = [
        (DateUnit::Hour, -1, "2023-08-01T23:00Z"),
        (DateUnit::Minute, 10, "2023-08-02T00:10Z"),
        (DateUnit::Second, 20, "2023-08-02T00:00:20Z"),
        (DateUnit::Day, 30, "2023-09-01T00:00Z"),
    ];
    for (unit, count, expected) in cases {
        assert_eq!(date_add(&from, unit, count), Ok(date(expected)), "{unit}");
    }
    assert!(error(date_add(&from, DateUnit::Day, i64::MAX)).contains("range"));
    assert!(error(date_add(&from, DateUnit::Day, 100_000_000)).contains("200000"));
    assert!(error(date_add(&1.into(), DateUnit::Day, 1)).contains("Int"));
}

#[test]
fn differences_are_milliseconds() {
    let [early, late] = ["2023-08-02", "2023-08-09"].map(date);
    assert_eq!(date_diff(&early, &late), Ok(Value::Long(-604_800_000)));
    assert_eq!(date_diff(&late, &early), Ok(Value::Long(604_800_000)));
    assert_eq!(date_diff(&date("1970-01-02"), &Value::Null), Ok(Value::Long(86_400_000)));
    assert!(error(date_diff(&Value::Null, &early)).contains("null"));
    assert!(error(date_diff(&early, &"2023".into())).contains("String"));
}

proptest! {
    #[test]
    fn the_text_of_a_date_is_read_again(millis in -62_000_000_000_000_i64..250_000_000_000_000) {
        let date = as_date(&Value::Long(millis)).expect("in range");
        prop_assert_eq!(as_date(&Value::text(date.to_string())), Ok(date.clone()));
        prop_assert_eq!(date_diff(&date, &Value::Null), Ok(Value::Long(millis)));
    }
}
