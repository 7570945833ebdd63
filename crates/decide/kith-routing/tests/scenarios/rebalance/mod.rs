//! Plays `testdata/scenarios/rebalance`.

mod language;
mod plans;
mod player;
mod words;

use kith_sim::scenario::{Area, check};

#[test]
fn rebalances_are_as_the_scripts_say() {
    let area = Area { folder: "rebalance", test: crate::TEST, language: language::REBALANCE };
    check(&area, player::Rebalance::default);
}
