//! What all commands of the terminal share: connecting to the cluster, printing answers and failures, and parsing names,
//! sizes and times in flags.

pub mod confirm;
pub mod connect;
pub mod controllers;
pub mod failure;
pub mod gremlin;
pub mod ids;
pub mod keys;
pub mod names;
pub mod order;
pub mod out;
pub mod output;
pub mod progress;
pub mod reply;
pub mod signals;
pub mod table;
mod units;
