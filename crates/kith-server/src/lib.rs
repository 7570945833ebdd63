//! Nodes, routers and what they coordinate, put together: the supervisor of `kith dev`, which runs a whole cluster on one machine.

pub mod dev;
