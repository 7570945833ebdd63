//! The cost of the fan-outs of a traversal, for `profile` and for the steps of profiles.

use crate::session::Run;
use kith_routing::execution::Cause;
use kith_traversal::graph::Notes;

/// Takes the notes about what a run has done since the last call: the number of fan-outs, the groups and nodes that
/// took part, and the numbers of requests, keys, hedges and cached keys. Hedges are not among the requests, nodes and
/// groups. Counts that are always 0 without hedging or a cache are left out while they are 0.
pub(super) fn take(run: &mut Run<'_>) -> Notes {
    let (rounds, cached) = run.take_fan_outs();
    if rounds.is_empty() && cached == 0 {
        return Notes::default();
    }
    let requests = || rounds.iter().flat_map(|round| &round.requests);
    let planned = || requests().filter(|request| request.cause != Cause::HEDGE);
    let hedges = requests().count() - planned().count();
    let keys: u64 = rounds.iter().map(|round| round.keys).sum();
    let mut notes = Notes::default();
    notes.counts.extend([
        ("fanOuts", rounds.len() as i64),
        ("requests", planned().count() as i64),
        ("keys", i64::try_from(keys).unwrap_or(i64::MAX)),
    ]);
    let optional = [("hedges", hedges as i64), ("cachedKeys", i64::try_from(cached).unwrap_or(i64::MAX))];
    notes.counts.extend(optional.into_iter().filter(|(_, count)| *count != 0));
    for request in planned() {
        notes.members.extend([("groups", request.group.into()), ("nodes", request.node.into())]);
    }
    notes
}
