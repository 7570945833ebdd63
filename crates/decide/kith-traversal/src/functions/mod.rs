//! The functions of the steps about text, dates and truth, and the expressions of `math` and templates of `format`: pure functions of
//! values, whose results and errors are TinkerPop's.
//!
//! Lengths and positions in strings count code units of UTF-16, as in Java.

mod conversions;
mod dates;
mod math;
mod template;
mod text;

pub use conversions::{as_bool, as_string, reverse};
pub use dates::{as_date, date_add, date_diff};
pub use math::Expression;
pub use template::{Part, Template};
pub use text::{TextFunction, concat};
