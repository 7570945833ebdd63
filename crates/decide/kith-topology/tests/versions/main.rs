//! Tests of what may become of the versions of a store.

mod golden;
mod properties;
mod scenarios;
mod supply;
