//! The error for a step that cannot be compiled.

use crate::{error::GremlinError, text::STEPS};
use kith_schema::nearest;

/// Steps that TinkerPop has and Kith refuses.
const UNSUPPORTED: &[&str] = &[
    "call",
    "connectedComponent",
    "io",
    "match",
    "pageRank",
    "peerPressure",
    "program",
    "read",
    "shortestPath",
    "subgraph",
    "tree",
    "write",
];

pub(super) fn unknown(name: &str) -> GremlinError {
    if UNSUPPORTED.contains(&name) {
        return GremlinError::unsupported(format!("the step {name}()"));
    }
    match nearest(name, STEPS.iter().copied().filter(|known| !UNSUPPORTED.contains(known))) {
        Some(near) => GremlinError::bad(format!("there is no step {name}(); did you mean {near}()?")),
        None => GremlinError::bad(format!("there is no step {name}()")),
    }
}
