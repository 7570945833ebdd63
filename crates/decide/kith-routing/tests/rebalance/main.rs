//! Plans of rebalances and their execution.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod placement;
mod plans;
mod refusals;
mod shapes;
mod state;
