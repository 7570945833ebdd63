//! How large requests and answers may be.

/// The most bytes of the values of one node's share of an answer, and of the whole answer unless a session's settings allow
/// another size (`answer-bytes-max`). Also the most bytes of all keys of a batch.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
