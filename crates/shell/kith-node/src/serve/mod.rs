//! From a request to its reply: which version it reads, whether it may read now, its evaluation, and its encoding.
//!
//! [`service`] takes requests of sessions, [`doors`] those of the node's own doors, and [`inspect`], [`export`] and [`peer`]
//! those of operators and other nodes. [`evaluator`] pins a version or a live graph, asks [`quota`] and [`load`], and runs a
//! [`job`]; [`slices`] splits long reads.

pub(crate) mod answer;
pub(crate) mod doors;
pub(crate) mod evaluator;
pub(crate) mod export;
pub(crate) mod inspect;
pub(crate) mod job;
pub(crate) mod load;
pub(crate) mod named;
pub(crate) mod own_read;
pub(crate) mod peer;
pub(crate) mod quota;
pub(crate) mod service;
pub(crate) mod slices;
