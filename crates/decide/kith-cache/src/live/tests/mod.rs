//! Tests of the live caches as a whole.

mod dice;
mod examples;
mod herd;
mod indexes;
mod progress;
mod random;
mod stale;
mod tickets;
mod traces;
mod truth;
