//! Live graphs: their types, their databases, and the leaders of their partitions (`docs/design/0019-live-graph.md`).

mod add_types;
mod apply;
mod create;
mod databases;
mod drop;
mod leaders;
mod records;
mod schema;
pub(crate) mod status;

pub use databases::Databases;
pub use leaders::assign_leaders;
pub use schema::LiveGraphStore;

#[cfg(test)]
mod tests;
