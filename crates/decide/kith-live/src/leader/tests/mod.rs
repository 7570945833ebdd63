//! Tests of leaders in a cluster in memory: a scripted run for each violation that models of the protocol found, and random
//! runs. The models are Python programs that are not part of this repository; comments name the program and the scenario.

mod batches;
mod client;
mod commits;
mod explore;
mod pairs;
mod replaced;
mod scenes;
mod unique;
mod world;

use crate::twin::ids_in;
