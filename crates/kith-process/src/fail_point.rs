//! Points at which a test ends a process: the steps of a push, a swap and a rollback, at each of which a crash must leave
//! exactly one served version.
//!
//! Off unless the environment variable [`VARIABLE`] names a folder. A process that reaches a step takes the file of the
//! step's name out of that folder, if one is there, and ends where it stands, as by `kill -9`: nothing is written, told or
//! closed any more. A file ends one process once, so that whoever starts it again gets past the step.

use std::{fs, path::PathBuf, process, sync::OnceLock};
use strum::IntoStaticStr;

/// Names the folder.
pub const VARIABLE: &str = "KITH_FAIL_POINTS";

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum FailPoint {
    /// Router: a push is written as begun.
    PushBegun,
    /// Router: one node of several has said that it is ready.
    PushPreparing,
    /// Router: every node is ready, nothing is swapped.
    PushPrepared,
    /// Router: the new version is the current one, and nobody has been told.
    PushFlipped,
    /// Router: what no version needs is removed, and nobody has been told.
    PushCleaned,
    /// Router: a push has failed, which is not written yet.
    PushFailed,
    /// Router: a push that failed is written as failed.
    PushGivenUp,
    /// Router: a swap or rollback is asked for, and not written.
    ChangeAsked,
    /// Router: it is written, and nobody has been told.
    ChangeWritten,
    /// Router: another's push is found abandoned.
    RecoveryBegun,
    /// Router: it is taken back.
    RecoveryWritten,
    /// Node: a first part of a version is pulled.
    NodeFetching,
    /// Node: a version's files are whole and in place.
    NodeFetched,
    /// Node: they are open, and not answered from.
    NodeOpened,
    /// Node: they are answered from, and nobody has been told.
    NodeReady,
    /// Node: a version that nobody needs is about to be removed.
    NodeRetiring,
}

impl FailPoint {
    /// Every one.
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

    /// The name of its file.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Ends this process if a test asked for that. Where none did, this is one load.
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
