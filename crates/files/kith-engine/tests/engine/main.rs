//! Tests the engine through its public interface: components on disk that are read, damaged and fetched.

// The lint exempts functions that are marked as tests, but not the helpers that they call.
#![allow(clippy::unwrap_used)]

mod example;
mod faults;
mod fetch;
mod flaky;
mod foreign;
mod formats;
mod graph;
mod patches;
mod peers;
mod prove;
mod residency;
mod sources;
mod stores;
mod subject;
