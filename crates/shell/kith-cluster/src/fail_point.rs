//! Points at which a test ends a process: the steps of a push, a swap and a rollback, at each of which a crash must leave
//! exactly one served version.
//!
//! Fail points are off unless the environment variable [`VARIABLE`] names a folder. If that folder has a file with the name of
//! a step, the process that reaches the step removes the file and ends at once, as after `kill -9`: it writes, sends and closes
//! nothing more. Each file ends one process once, so that the restarted process gets past the step.

use std::{fs, path::PathBuf, process, sync::OnceLock};
use strum::IntoStaticStr;

/// The environment variable that names the folder.
pub const VARIABLE: &str = "KITH_FAIL_POINTS";

/// A step at which a test can end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum FailPoint {
    /// Router: the record says that a push has begun.
    PushBegun,
    /// Router: one of several nodes has reported that it is ready.
    PushPreparing,
    /// Router: every node is ready, and the version is not yet current.
    PushPrepared,
    /// Router: the new version is the current one, and no reply has been sent.
    PushFlipped,
    /// Router: files that no version needs are removed, and no reply has been sent.
    PushCleaned,
    /// Router: a push has failed, and the record does not say so yet.
    PushFailed,
    /// Router: the record says that the push has failed.
    PushGivenUp,
    /// Router: a swap or rollback is requested, and not written yet.
    ChangeAsked,
    /// Router: the swap or rollback is written, and no reply has been sent.
    ChangeWritten,
    /// Router: a push is found whose router has died.
    RecoveryBegun,
    /// Router: that push is rolled back.
    RecoveryWritten,
    /// Node: the first part of a version is pulled.
    NodeFetching,
    /// Node: the files of a version are complete and in place.
    NodeFetched,
    /// Node: these files are open, and queries are not answered from them yet.
    NodeOpened,
    /// Node: queries are answered from these files, and no report has been sent.
    NodeReady,
    /// Node: a version that nobody needs is about to be removed.
    NodeRetiring,
}

impl FailPoint {
    /// All steps.
    pub const ALL: [FailPoint; 16] = [
        FailPoint::PushBegun,
        FailPoint::PushPreparing,
        FailPoint::PushPrepared,
        FailPoint::PushFlipped,
        FailPoint::PushCleaned,
        FailPoint::PushFailed,
        FailPoint::PushGivenUp,
        FailPoint::ChangeAsked,
        FailPoint::ChangeWritten,
        FailPoint::RecoveryBegun,
        FailPoint::RecoveryWritten,
        FailPoint::NodeFetching,
        FailPoint::NodeFetched,
        FailPoint::NodeOpened,
        FailPoint::NodeReady,
        FailPoint::NodeRetiring,
    ];

    /// The name of the step's file.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Ends this process if a test asked for that. Without such a test, this costs one load from memory.
    pub fn reach(self) {
        static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
        let folder = FOLDER.get_or_init(|| std::env::var_os(VARIABLE).map(PathBuf::from));
        if let Some(folder) = folder
            && fs::remove_file(folder.join(self.name())).is_ok()
        {
            eprintln!("fail point {}: this process ends", self.name());
            process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_point_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = FailPoint::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), FailPoint::ALL.len());
    }
}
