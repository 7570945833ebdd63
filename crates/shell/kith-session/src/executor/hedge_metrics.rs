//! The metrics of hedging.

use kith_routing::execution::{HedgeAbort, HedgeCounts};

/// Adds the counts of one fan-out.
pub(super) fn count(hedges: &HedgeCounts) {
    if *hedges == HedgeCounts::default() {
        return;
    }
    metrics::counter!("kith_client_hedges_total").increment(hedges.sent.into());
    metrics::counter!("kith_client_hedges_won_total").increment(hedges.won.into());
    metrics::counter!("kith_client_hedged_keys_total").increment(hedges.keys.into());
    metrics::counter!("kith_client_hedged_keys_wasted_total").increment(hedges.keys_wasted().into());
    for reason in HedgeAbort::ALL.into_iter().filter(|reason| 0 < hedges.aborted(*reason)) {
        metrics::counter!("kith_client_hedges_aborted_total", "reason" => reason.name())
            .increment(hedges.aborted(reason).into());
    }
}
