//! One question, however it is stated: a line of `kith run`, `kith graph …` or `kith explain …`.
//!
//! [`Operation`] is the one place that names the operations. A new one is a variant there, with
//! a struct of its fields; JSON, command line, completions and near-miss hints follow from it.

mod line;
mod names;
mod operation;
mod options;
mod question;

pub use line::parse;
pub use operation::{Operation, Shape};
pub use question::Question;
