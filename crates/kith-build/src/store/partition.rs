//! One partition of a version, built by itself, on its way to the place of all.

use crate::{Failure, Progress, Told, place::refused};
use kith_engine::load::PartitionSummary;
use kith_objects::{Objects, ObjectsError};
use kith_types::ErrorCode;
use std::path::Path;

/// How the folder of one partition is named, in the folder of all: this and five digits.
pub const PARTITION_PREFIX: &str = "p";

/// Uploads the partition in `folder` to a bucket, and gives the place where it then is. It may be repeated.
///
/// # Errors
/// `build_failed` if a build of other rows or options is there; what the object store says.
pub fn publish_partition(
    place: &Objects,
    folder: &Path,
    summary: &PartitionSummary,
    told: &mut Told<'_>,
) -> Result<Objects, Failure> {
    let mut told = |done, total| told(Progress::Bytes { stage: "uploading", done, total });
    match place.upload_partition(folder, summary, &mut told) {
        Ok(name) => Ok(place.join(&name)),
        Err(ObjectsError::Taken { object }) => {
            let message =
                format!("{object}: another build of the partition is there, of other rows or options");
            let help = "give each build of a version a place of its own for its partitions";
            Err(Failure::new(ErrorCode::BuildFailed, message, help))
        }
        Err(error) => Err(refused(&error)),
    }
}
