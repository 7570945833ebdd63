//! Output for people: plain tables without frames, with numbers aligned to the right, and no control characters that would
//! disturb a pipe.

pub mod cluster;
pub mod load;
pub mod look;
pub mod push;
pub mod reshape;
#[cfg(test)]
mod tests;

pub use kith_terminal::table::{
    Side, answer, bytes, compute, count, fitted_with_note, graphs, plan, plural, screen_width, stores, table,
    values, wrapped,
};
