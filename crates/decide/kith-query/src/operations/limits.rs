//! The limits of queries. A query beyond a limit is refused with `OutOfRange`, and never cut.

pub use kith_operators::{ASSOCIATION_IDS_MAX, FIND_VALUES_MAX};

/// The most targets of one distance query. A page shows tens of targets. A batch of this many still fits into one message
/// to each node, with room for lists of hundreds of ids each in the answers.
pub const DISTANCE_TARGETS_MAX: usize = 10_000;

/// The most members of one degree query. The answer has a length of a few bytes for each.
pub const DEGREE_IDS_MAX: usize = 100_000;

/// The most objects of one query: as many as members of a degree query. Nodes refuse answers of too many bytes.
pub const OBJECT_IDS_MAX: usize = 100_000;

/// The most ids of one query for objects with certain values. Further ids come in further pages.
pub const FIND_IDS_MAX: u64 = 100_000;

/// The most edges of one answer. With the most columns that is a message of a few megabytes. Further edges come in further
/// pages.
pub const EDGES_MAX: u64 = 100_000;

/// The longest path that is searched for: three levels from either end. Longer paths reach most members of any social
/// graph.
pub const PATH_LENGTH_MAX: u32 = 6;

/// The most suggestions of one query: far more than any page shows, and far fewer than a message can carry.
pub const SUGGESTIONS_MAX: u32 = 10_000;

/// A list of at most this many ids is fetched and intersected at the caller. A longer list is intersected on its node
/// (Moolle §II-C). With about 2 bytes per id, a list of this length fits into one frame of 8 KiB.
pub const COMMON_FETCH_MAX: u64 = 4_096;
