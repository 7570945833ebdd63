//! How large a question may be. Beyond, it is refused with `OutOfRange`, never cut.

use crate::OperationError;

/// Targets of one distance query. A page shows tens; a batch of this many still fits one
/// message to each node, with room for lists of hundreds of ids each in the answers.
pub const DISTANCE_TARGETS_MAX: usize = 10_000;

/// Members of one degree query: a length of a few bytes comes back for each.
pub const DEGREE_IDS_MAX: usize = 100_000;

/// Objects of one query: as many as members of a degree query. Answers of many bytes are refused by nodes.
pub const OBJECT_IDS_MAX: usize = 100_000;

/// Ids of one query of associations: no list can return more ([`kith_live::CAP_MAX`]).
pub const ASSOCIATION_IDS_MAX: usize = kith_live::CAP_MAX as usize;

/// Edges of one answer: with the most columns that is a message of a few megabytes. Whoever wants more takes pages.
pub const EDGES_MAX: u64 = 100_000;

/// Longest path looked for. Three levels from either end; further ones reach most of any social graph.
pub const PATH_LENGTH_MAX: u32 = 6;

/// Suggestions of one query: far beyond any page, far below a message's limit.
pub const SUGGESTIONS_MAX: u32 = 10_000;

/// A list of at most this many ids is fetched to intersect it at the caller; a longer one is
/// intersected where it is (Moolle §II-C). At about 2 bytes an id it travels in one frame of 8 KiB.
pub const COMMON_FETCH_MAX: u64 = 4_096;

/// Ids of one end that are sent to every node, so that the last level of a path search need not come back whole.
pub(super) const FRONTIER_PUSH_MAX: usize = 4_096;

/// Refuses a number outside of its range.
pub(super) fn within(
    what: &'static str,
    got: u64,
    least: u64,
    greatest: u64,
    range: &'static str,
) -> Result<(), OperationError> {
    if (least..=greatest).contains(&got) {
        Ok(())
    } else {
        Err(OperationError::OutOfRange { what, got, range })
    }
}
