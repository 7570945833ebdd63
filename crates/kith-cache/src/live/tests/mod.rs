//! Tests of the whole machine.

mod dice;
mod examples;
mod herd;
mod random;
mod stale;
mod tickets;
mod traces;
mod truth;
