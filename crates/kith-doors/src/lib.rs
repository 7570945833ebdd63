//! The doors of a serving process beside gRPC and frames: what a client says in its own protocol becomes reads of a
//! [`resp::Backend`], and what comes of them its answers.

pub mod resp;
