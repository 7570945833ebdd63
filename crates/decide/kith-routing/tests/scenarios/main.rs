//! Plays `testdata/scenarios/{routing,execution,rebalance}`: see `docs/testing.md`.

mod execution;
mod language;
mod outcome;
mod rebalance;
mod routing;
mod words;

use kith_sim::scenario::{Area, check};

const PACKAGE: &str = "kith-routing";

#[test]
fn routing_and_placement_are_as_told() {
    let area = Area { folder: "routing", package: PACKAGE, language: language::ROUTING };
    check(&area, routing::Routing::default);
}

#[test]
fn executions_are_as_told() {
    let area = Area { folder: "execution", package: PACKAGE, language: language::EXECUTION };
    check(&area, execution::FanOut::default);
}
