//! The faults of nodes.

use kith_types::{NodeId, Timestamp};

/// A fault of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The process dies. Its connections break at once, and new ones are refused.
    Crash,
    /// The process is paused, as in a long garbage collection. Its connections stay open, but it answers nothing.
    Pause,
    /// The node's processor and its network take longer by this factor.
    Slow(f64),
    /// The fault ends: a crashed process has been restarted, and a paused one continues.
    Return,
}

/// A fault with its time and its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultAt {
    /// The simulated time at which the fault begins.
    pub at: Timestamp,
    /// The node that is faulty.
    pub node: NodeId,
    /// The kind of the fault.
    pub fault: Fault,
}
