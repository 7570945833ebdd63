//! A filter of edges by their values in a column.

use kith_schema::ColumnNumber;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The edges whose value in a column lies in a range, both ends included: in JSON an object, on the command line
/// `since=2015..2020`, where either end may be left out. The bounds are numbers of the column's kind, not stored values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnFilter {
    /// One of the columns that the graph was loaded with.
    pub column: String,
    /// The least value; `None`: there is no lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<ColumnNumber>,
    /// The greatest value; `None`: there is no upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<ColumnNumber>,
}

impl FromStr for ColumnFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected COLUMN=LOW..HIGH, such as since=2015..2020, not {text:?}");
        let (column, range) = text.split_once('=').ok_or_else(expected)?;
        let (low, high) = range.split_once("..").ok_or_else(expected)?;
        let end = |end: &str| match end {
            "" => Ok(None),
            end => end.parse().map(Some).map_err(|_| expected()),
        };
        Ok(Self { column: column.to_owned(), low: end(low)?, high: end(high)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_of_a_range_may_be_left_out() {
        use ColumnNumber::{F64, I64, U64};
        let of = |low, high| Ok(ColumnFilter { column: "since".to_owned(), low, high });
        assert_eq!("since=2015..2020".parse(), of(Some(U64(2015)), Some(U64(2020))));
        assert_eq!("since=..-2".parse(), of(None, Some(I64(-2))));
        assert_eq!("since=0.5..".parse(), of(Some(F64(0.5)), None));
        for wrong in ["since", "since=2015", "since=a..b", "since=1..nan", "since=inf.."] {
            assert!(wrong.parse::<ColumnFilter>().is_err(), "{wrong}");
        }
        let json = serde_json::from_str::<ColumnFilter>(r#"{"column":"since","low":3}"#);
        assert_eq!(json.ok(), of(Some(U64(3)), None).ok());
    }
}
