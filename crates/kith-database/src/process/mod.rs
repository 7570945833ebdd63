//! Databases in a separate process: one file per graph, which nodes access over gRPC.

mod call;
mod fault;
mod files;
mod portions;
mod remote;
mod service;

pub use call::{Locate, RemoteOptions, RemoteTarget};
pub use files::GraphFiles;
pub use remote::RemoteDatabase;
pub use service::DatabaseService;
