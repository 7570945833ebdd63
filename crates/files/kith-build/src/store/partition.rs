//! Uploads one partition of a version, built separately, to the place of all partitions.

use crate::{Failure, OnProgress, Progress, place::refused};
use kith_files::PartitionSummary;
use kith_files::objects::{Objects, ObjectsError};
use kith_types::ErrorCode;
use std::path::Path;

/// The prefix of the name of a partition's folder; five digits follow.
pub const PARTITION_PREFIX: &str = "p";

/// Uploads the partition in `folder` to a bucket, and returns its place there. May be repeated.
///
/// # Errors
/// `build_failed` if a build with other rows or options is there; the errors of the object store.
pub fn publish_partition(
    objects: &Objects,
    folder: &Path,
    summary: &PartitionSummary,
    on_progress: &mut OnProgress<'_>,
) -> Result<Objects, Failure> {
    let mut report_bytes = |done, total| on_progress(Progress::Bytes { stage: "uploading", done, total });
    match objects.partitions().upload(folder, summary, &mut report_bytes) {
        Ok(name) => Ok(objects.join(&name)),
        Err(ObjectsError::Taken { object }) => {
            let message =
                format!("{object}: another build of the partition is there, of other rows or options");
            let help = "give each build of a version a place of its own for its partitions";
            Err(Failure::new(ErrorCode::BuildFailed, message, help))
        }
        Err(error) => Err(refused(&error)),
    }
}
