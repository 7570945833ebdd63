//! Plays `testdata/scenarios/{routing,execution,rebalance}`: see `docs/testing.md`.

mod execution;
mod language;
mod outcome;
mod rebalance;
mod routing;
mod words;

use kith_sim::scenario::{Area, check};

const TEST: &str = "-p kith-routing --test scenarios";

#[test]
fn routing_and_placement_are_as_the_scripts_say() {
    let area = Area { folder: "routing", test: TEST, language: language::ROUTING };
    check(&area, routing::Routing::default);
}

#[test]
fn executions_are_as_the_scripts_say() {
    let area = Area { folder: "execution", test: TEST, language: language::EXECUTION };
    check(&area, execution::FanOut::default);
}
