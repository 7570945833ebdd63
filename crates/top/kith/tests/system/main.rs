//! A real `kith dev`, and clusters of separate processes, used as their users use them. All tests are in one program: fifty
//! programs would each be linked with all of Kith.

mod bench_json;
mod building;
mod built_graphs;
mod cancel;
mod cli;
mod compute;
mod connections;
mod contract;
mod controllers;
mod copies;
mod crashes;
mod databases;
mod depth;
mod dev;
mod doors;
mod edges;
mod failover;
mod fan_out;
mod faults;
mod fetch;
mod gremlin;
mod groups;
mod hostile;
mod ids;
mod in_process;
mod integrity;
mod limits;
mod live;
mod look;
mod machines;
mod memory;
mod objects;
mod operators;
mod partitions;
mod pipeline;
mod placement;
mod programs;
mod prompt;
mod properties;
mod push;
mod rebalance;
mod redis;
mod redis_tls;
mod reference_answers;
mod rights;
mod security;
mod stores;
mod streams;
mod swaps;
mod tail;
mod top;
mod values;

#[path = "../support/mod.rs"]
mod support;
