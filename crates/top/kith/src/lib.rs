//! The process of databases, and the supervisor of `kith dev`, which runs a whole cluster on one machine, in one process
//! or with one process for each database, node and router. The program `kith` uses this library, and tests start clusters
//! in their own process with it.
//! The supervisor answers no requests itself, and everything that it starts ends with it.
//!
//! ```text
//! kith dev ─► dev: metadata store (embedded) ─┬─► databases ─► nodes ─► routers
//!                                             └─► ready file: the addresses of all, for commands of the terminal
//! ```
//!
//! - [`database`]: the process `kith database`.
//! - [`dev`]: the options of the cluster, its start and its end.
//! - `dev/plan`, `dev/ports`: which members are started, and where they listen.
//! - `dev/members`, `dev/processes`, `dev/roles`: members in this process or as children, which are watched and
//!   restarted.
//! - `dev/ready`: the ready file, replaced atomically at every change.
//! - `dev/logs`, `dev/temporary`, `dev/stop`: logs, a data directory for one run, and stopping from another process.
//!
//! The commands in `serve` start the single roles.
//!
//! To add a role to a development cluster, begin with `dev/plan` and `dev/roles`.

pub mod database;
pub mod dev;
