//! Carries out pushes, swaps and rollbacks: a thin shell around the state machine of `kith_topology::versions`.
//! Every change is one conditional write of the store's record. Whichever router carries it out, and whenever that router
//! dies, at most one version is served.

mod active;
mod caretaker;
mod clean;
mod commands;
mod definition;
mod fence;
mod lifetime;
mod observe;
mod offer;
mod prepare;
mod properties;
mod push;
mod run;

pub use commands::Stores;
pub(crate) use observe::{last_push, observed};
pub(crate) use push::{Push, node_wait};
