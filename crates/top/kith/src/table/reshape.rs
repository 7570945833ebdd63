//! Changes of the cluster's shape, as text for people.

use super::{bytes, plural};
use kith_wire::documents::RebalanceStatusDocument;

/// Returns the progress in one line.
pub fn progress(status: &RebalanceStatusDocument) -> String {
    let progress = &status.progress;
    format!(
        "{}: batch {} of {}, {} of {} copies, {} of {}",
        status.state,
        progress.batches_done,
        progress.batches,
        progress.moves_done,
        progress.moves,
        bytes(progress.bytes_done),
        bytes(progress.bytes),
    )
}

/// Returns what the rebalance is, its progress, and what is left to do.
pub fn status(status: &RebalanceStatusDocument) -> String {
    let mut text = format!("{}: {}, epoch {}\n", status.shape, status.state, status.epoch);
    if let Some(id) = &status.id {
        text.push_str(&format!("{id}, by {}", status.who));
        if let Some(driver) = &status.driver {
            text.push_str(&format!(", driven by {driver}"));
        }
        text.push('\n');
    }
    if 0 < status.progress.moves {
        text.push_str(&format!("{}\n", progress(status)));
    }
    if 0 < status.progress.reclaims_left {
        let left = plural(status.progress.reclaims_left as u64, "moved partition");
        text.push_str(&format!("{left} still to be freed on old owners\n"));
    }
    if let Some(reason) = &status.reason {
        text.push_str(&format!("{reason}\n"));
    }
    text
}
