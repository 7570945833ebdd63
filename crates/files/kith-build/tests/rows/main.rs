//! Tests of reading and writing rows in all formats.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod bombs;
mod exact;
mod fields;
mod inference;
mod parquet_out;
mod refused;
mod support;
mod text;
mod typed;
