//! What may happen to a node.

use kith_types::{NodeId, Timestamp};

/// One thing that happens to a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The process dies: its connections break at once, new ones are refused.
    Crash,
    /// The process stands still, as in a long collection: connections stay, nothing is answered.
    Pause,
    /// Everything takes so many times as long.
    Slow(f64),
    /// All is well again: a dead process has been restarted, a paused one goes on where it was.
    Return,
}

/// A fault and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultAt {
    /// When it begins, in simulated time.
    pub at: Timestamp,
    /// To whom.
    pub node: NodeId,
    /// The fault itself.
    pub fault: Fault,
}
