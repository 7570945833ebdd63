//! Places that hold built versions and rows: folders and object stores (S3, Google, Azure), behind one blocking
//! interface.
//!
//! The `object_store` crate implements the protocols. This crate adds what Kith needs: a
//! [`Source`](kith_engine::Source) that nodes fetch from, uploads whose manifest is written last (so that a
//! half-uploaded version is not a version), listings, and rows as a stream. Calls block, so they must run on threads
//! that may wait, not in asynchronous tasks. Nothing that is read is trusted here; the engine proves every block.
//!
//! ```
//! use kith_objects::{Access, Location, Objects};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # std::fs::write(dir.path().join("rows.csv"), "key,value\na,1\n")?;
//! let location: Location = format!("file://{}", dir.path().display()).parse()?; // or s3://bucket/prefix
//! let objects = Objects::open(&location, &Access::from_environment())?;
//! assert_eq!(objects.list()?.len(), 1);
//! # Ok(())
//! # }
//! ```

mod access;
mod assemble;
mod claim;
#[cfg(feature = "cloud")]
mod clients;
mod error;
#[cfg(test)]
#[path = "../../../testdata/formats/golden.rs"]
mod golden;
mod listed;
mod location;
mod objects;
mod partitions;
mod put_new;
mod read;
mod remote;
mod upload;

pub use access::Access;
pub use claim::{ClaimError, IDENTITY_NAME};
pub use error::ObjectsError;
pub use listed::Listed;
pub use location::{Location, LocationError};
pub use objects::Objects;
pub use read::ObjectReader;
pub use upload::{Download, Upload};
