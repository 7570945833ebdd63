//! The meaning of values: tables of cases, and laws over generated values.

mod conversions;
mod dates;
mod equality;
mod lists;
mod math;
mod numbers;
mod operators;
mod order;
mod predicates;
mod properties;
mod texts;
mod values;
