//! The limits of queries that nodes check too.

/// The most values of one query for the ids of objects that have them. Each is a statement of the database.
pub const FIND_VALUES_MAX: usize = 1_000;

/// The most tests of elements in one plan.
pub const TESTS_MAX: usize = 64;

/// The most ids of one query for associations, because no list can return more ([`kith_schema::live::CAP_MAX`]).
pub const ASSOCIATION_IDS_MAX: usize = kith_schema::live::CAP_MAX as usize;

/// The most bytes of sets, lists and tallies that one evaluation over a graph holds at the same time: 8 million ids. The
/// kernels that compute them take up to four times as much in addition.
pub const GRAPH_BYTES_MAX: usize = 64 << 20;
