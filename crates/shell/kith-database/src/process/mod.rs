//! Databases in a separate process: one file per graph, which nodes access in frames.

mod call;
mod fault;
mod files;
mod portions;
mod processes;
mod remote;
mod service;

pub use call::{RemoteOptions, RemoteTarget};
pub use files::GraphFiles;
pub use processes::{DatabaseProcesses, ProcessLocator};
pub use remote::RemoteDatabase;
pub use service::DatabaseService;
