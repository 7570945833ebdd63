//! A store's folder in the cluster's object store: it allows one load or push at a time, and removes the files of those
//! that were killed.
//!
//! If the object store is a bucket, components are built in a temporary folder with the same layout and uploaded when they
//! are complete. A bucket has no locks. Each push writes to folders of its own there, which are named after its id, and the
//! cluster admits one push at a time.
//!
//! During a build, `<store>/.unfinished` contains its version. A later build that finds the file knows that the earlier one
//! was killed, and removes its files unless the cluster names that version.

mod locked;
#[cfg(test)]
mod tests;

pub use locked::LockedStore;

use crate::{
    failure::{Failure, chain},
    place::{open_objects, refused, unusable},
};
use kith_files::objects::{ClaimError, Objects};
use kith_types::{ErrorCode, PartitionCount};
use kith_wire::documents::{ClusterDocument, TopologyDocument};
use locked::Bucket;
use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::Path,
};

const LOCK_FILE: &str = ".lock";

/// The folder of a cluster's built components.
#[derive(Debug)]
pub struct ObjectStore {
    objects: Objects,
}

/// The purpose of a lock on a store's folder.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// A load of a graph, with the id of its push.
    Load(&'a str),
    /// A push, with its id.
    Push(&'a str),
}

impl ObjectStore {
    /// Opens the object store that the cluster names. Creates it if its parent folder exists. If it is a folder, `prepare`
    /// gets its path before anything is written; it may create the folder, and set who may read the files of this process.
    ///
    /// # Errors
    /// `object_store_unreachable` if it is not on this machine; `object_store_taken` if it belongs to another cluster.
    pub fn open(
        cluster: &ClusterDocument,
        prepare: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Self, Failure> {
        let objects = open_objects(&cluster.object_store)?;
        if let Some(folder) = objects.folder() {
            prepare(folder).map_err(|error| unreachable(folder, &error))?;
        }
        match (objects.claim(&cluster.cluster_id), objects.folder()) {
            (Ok(()), _) => Ok(Self { objects }),
            (Err(ClaimError::Objects(error)), Some(folder)) => Err(unreachable(folder, &error)),
            (Err(ClaimError::Objects(error)), None) => Err(refused(&error)),
            (Err(error), _) => Err(Failure::new(error.code(), error.to_string(), error.help())),
        }
    }

    /// Locks the store against other loads and pushes.
    ///
    /// # Errors
    /// `load_running` or `push_running` if one is under way.
    pub fn lock(self, store: &str, work: Work<'_>) -> Result<LockedStore, Failure> {
        let Some(objects) = self.objects.folder().map(Path::to_owned) else {
            return self.in_bucket(store, work);
        };
        let folder = objects.join(store);
        let path = folder.join(LOCK_FILE);
        let open = || File::options().create(true).truncate(false).write(true).open(&path);
        let mut lock = fs::create_dir_all(&folder).and_then(|()| open()).map_err(unusable(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(running(store, work, &path)),
            Err(TryLockError::Error(error)) => return Err(unusable(&path)(error)),
        }
        let id = if let Work::Push(id) = work { id } else { "" };
        lock.set_len(0).and_then(|()| lock.write_all(id.as_bytes())).map_err(unusable(&path))?;
        Ok(LockedStore { objects, folder, lock: Some(lock), bucket: None })
    }

    fn in_bucket(self, store: &str, work: Work<'_>) -> Result<LockedStore, Failure> {
        let built = tempfile::Builder::new().prefix("kith-build-").tempdir();
        let built = built.map_err(unusable(&std::env::temp_dir()))?;
        let folder = built.path().join(store);
        fs::create_dir_all(&folder).map_err(unusable(&folder))?;
        let (Work::Load(push) | Work::Push(push)) = work;
        let objects = built.path().to_owned();
        let bucket = Bucket { objects: self.objects.join(store), push: push.to_owned(), _built: built };
        Ok(LockedStore { objects, folder, lock: None, bucket: Some(bucket) })
    }
}

/// The error for a folder that does not exist on this machine, or is not writable.
fn unreachable(folder: &Path, error: &dyn std::error::Error) -> Failure {
    let message = format!("the cluster's object store {} cannot be used: {}", folder.display(), chain(error));
    let help = "run this on a machine that has this folder, with the rights to write to it";
    Failure::new(ErrorCode::ObjectStoreUnreachable, message, help)
}

/// The error for a lock that is taken. It names the holder, which has written its id into the file.
fn running(store: &str, work: Work<'_>, lock: &Path) -> Failure {
    if let Work::Load(_) = work {
        return Failure::new(
            ErrorCode::LoadRunning,
            format!("another load of graph {store:?} is under way"),
            "wait until it ends; a load that was killed does not block others",
        );
    }
    let id = fs::read_to_string(lock).unwrap_or_default();
    let id = if id.is_empty() { "another push" } else { &id };
    Failure::new(
        ErrorCode::PushRunning,
        format!("{id} of store {store:?} is under way"),
        "wait until it ends; one that was killed does not block others",
    )
}

/// Removes a folder if it exists.
///
/// # Errors
/// `object_store_unusable` if it cannot be removed.
pub fn remove_folder(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(folder)(error)),
        _ => Ok(()),
    }
}

/// The number of the cluster's partitions.
///
/// # Errors
/// `internal` if the topology has no valid number.
pub fn partition_count(topology: &TopologyDocument) -> Result<PartitionCount, Failure> {
    let partitions = topology.cluster.partitions;
    PartitionCount::new(partitions).ok_or_else(|| {
        Failure::new(ErrorCode::Internal, format!("the cluster says that it has {partitions} partitions"), "")
    })
}
