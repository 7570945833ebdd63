//! The places that hold built versions and rows: folders and object stores (S3, Google, Azure), behind one blocking
//! interface. Builders upload through it, nodes and routers read through it. The `object_store` crate implements the
//! protocols.
//!
//! - [`Location`], [`Access`]: the text with which users name a place, and how it may be reached.
//! - [`Objects`]: a place and the objects in it; `listed` and `read` for listings and streams.
//! - [`VersionObjects`]: uploads whose manifest is written last. [`PartitionObjects`]: what tasks build one by one.
//! - `claim`: which cluster owns a place.
//! - `remote`: blocking access to an object store. `clients`: the only module that knows the clients of each protocol.
//!
//! Calls block, so they must run on threads that may wait, not in asynchronous tasks. A version without a manifest is
//! not a version. Nothing that is read is trusted here: the engine proves every block.
//!
//! ```
//! use kith_files::objects::{Access, Location, Objects};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # std::fs::write(dir.path().join("rows.csv"), "key,value\na,1\n")?;
//! let location: Location = format!("file://{}", dir.path().display()).parse()?; // or s3://bucket/prefix
//! let objects = Objects::open(&location, &Access::from_environment())?;
//! assert_eq!(objects.list()?.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! To add a kind of object store, add a scheme to [`Location`] and a client in `clients`.

mod access;
mod assemble;
mod claim;
#[cfg(feature = "cloud")]
mod clients;
mod error;
mod listed;
mod location;
mod partitions;
mod place;
mod put_new;
mod read;
mod remote;
mod upload;

pub use access::Access;
pub use claim::{ClaimError, IDENTITY_NAME};
pub use error::{ObjectsError, PlaceError};
pub use listed::ListedObject;
pub use location::{Location, LocationError};
pub use partitions::PartitionObjects;
pub use place::Objects;
pub use read::ObjectReader;
pub use upload::{Download, Upload, VersionObjects};
