//! Output for people: plain tables without frames, numbers to the right, nothing that a pipe would trip over.

pub mod answer;
pub mod cluster;
pub mod compute;
pub mod graphs;
pub mod live;
pub mod load;
pub mod look;
pub mod plan;
pub mod push;
pub mod reshape;
pub mod stores;
#[cfg(test)]
mod tests;
pub mod values;

pub use kith_terminal::table::{Side, bytes, count, date, micros, plural, table};
