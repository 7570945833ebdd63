//! A filter of edges by the value that they have in a column.

use kith_ops::ColumnRange;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The edges whose value in a column lies in a range, both ends included: in JSON an object, on the command line
/// `since=2015..2020`, where either end may be left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// One of the columns that the graph was loaded with.
    column: String,
    /// The least value.
    #[serde(default)]
    low: u64,
    /// The greatest value.
    #[serde(default = "unlimited")]
    high: u64,
}

fn unlimited() -> u64 {
    u64::MAX
}

impl Filter {
    pub(crate) fn of(ColumnRange { column, low, high }: ColumnRange) -> Self {
        Self { column, low, high }
    }

    pub(crate) fn range(self) -> ColumnRange {
        let Self { column, low, high } = self;
        ColumnRange { column, low, high }
    }
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected COLUMN=LOW..HIGH, such as since=2015..2020, not {text:?}");
        let (column, range) = text.split_once('=').ok_or_else(expected)?;
        let (low, high) = range.split_once("..").ok_or_else(expected)?;
        let end = |end: &str, default: u64| match end {
            "" => Ok(default),
            end => end.parse().map_err(|_| expected()),
        };
        Ok(Self { column: column.to_owned(), low: end(low, 0)?, high: end(high, u64::MAX)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_of_a_range_may_be_left_out() {
        let of = |low, high| Ok(Filter { column: "since".to_owned(), low, high });
        assert_eq!("since=2015..2020".parse(), of(2015, 2020));
        assert_eq!("since=..2020".parse(), of(0, 2020));
        assert_eq!("since=2015..".parse(), of(2015, u64::MAX));
        for wrong in ["since", "since=2015", "since=a..b", "since=-1..2"] {
            assert!(wrong.parse::<Filter>().is_err(), "{wrong}");
        }
        let json = serde_json::from_str::<Filter>(r#"{"column":"since","low":3}"#);
        assert_eq!(json.ok(), of(3, u64::MAX).ok());
    }
}
