//! Leaders driven through a cluster in memory: scripted runs for each violation that the models of the protocol found, and
//! random ones.

mod batches;
mod client;
mod commits;
mod explore;
mod pairs;
mod replaced;
mod scenes;
mod world;

use crate::twin::ids_in;
