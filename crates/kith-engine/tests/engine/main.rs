//! The engine as its users see it: components on disk, read, damaged, fetched.

// The lint spares functions marked as tests, not the helpers that they call.
#![allow(clippy::unwrap_used)]

mod example;
mod faults;
mod fetch;
mod flaky;
mod foreign;
mod formats;
#[path = "../../../../testdata/formats/golden.rs"]
mod golden;
mod graph;
mod patches;
mod peers;
mod prove;
mod residency;
mod sources;
mod stores;
mod subject;
