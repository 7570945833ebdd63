//! What every command of the terminal shares: how the cluster is found, how answers are printed, how failures are told, and how
//! flags spell names, sizes and times.

pub mod confirm;
pub mod connect;
pub mod controllers;
pub mod failure;
pub mod keys;
pub mod names;
pub mod out;
pub mod output;
pub mod progress;
pub mod reply;
pub mod signals;
pub mod table;
mod units;
