//! Databases in a process of their own: one file per graph, which nodes reach over gRPC.

mod call;
mod fault;
mod files;
mod remote;
mod service;

pub use call::{Locate, RemoteOptions, RemoteTarget};
pub use files::GraphFiles;
pub use remote::RemoteDatabase;
pub use service::DatabaseService;
