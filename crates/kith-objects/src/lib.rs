//! Places that hold built versions and rows: folders and object stores (S3, Google, Azure) behind one blocking face.
//!
//! The protocols are those of the `object_store` crate; here is what Kith needs of them: a [`Source`](kith_engine::Source)
//! that nodes fetch from, uploads whose manifest comes last, so that a half-uploaded version is none, listings, and rows
//! as a stream. Calls block: they are for threads that may wait, not for asynchronous tasks. Nothing that is read is
//! trusted here: the engine proves every block.
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
