//! Combines nodes, routers and their coordination: the supervisor of `kith dev`, which runs a whole cluster on one machine.

pub mod dev;
