//! A store's folder in the cluster's object store: one load or push at a time, and nothing left of those that were
//! killed.
//!
//! If the object store is a bucket, what is built gathers in a temporary folder of the same shape and goes up when it is whole. A
//! bucket has no locks: there each push writes to folders of its own, named by its id, and the cluster admits one push.
//!
//! While a build is under way, `<store>/.unfinished` names its version. A later build that finds the file knows that the
//! earlier one was killed, and removes what it built unless the cluster names it.

mod locked;
#[cfg(test)]
mod tests;

pub use locked::LockedStore;

use crate::{
    failure::{Failure, chain},
    place::{place, refused},
};
use kith_objects::{ClaimError, Objects};
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

/// What a store's folder is locked for.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// A load of a graph, by the id of its push.
    Load(&'a str),
    /// A push, by its id.
    Push(&'a str),
}

impl ObjectStore {
    /// The object store that the cluster names, made if the folder around it is there. `prepare` is given the folder, if it is one,
    /// before anything is written there; it may make the folder, and settle who may read what this process writes.
    ///
    /// # Errors
    /// `object_store_unreachable` if it is not on this machine, `object_store_taken` if it is another cluster's.
    pub fn open(
        cluster: &ClusterDocument,
        prepare: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Self, Failure> {
        let objects = place(&cluster.object_store)?;
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

    /// Keeps other loads and pushes of the store out.
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

/// What is told about a folder that this machine does not have, or may not write to.
fn unreachable(folder: &Path, error: &dyn std::error::Error) -> Failure {
    let message = format!("the cluster's object store {} cannot be used: {}", folder.display(), chain(error));
    let help = "run this on a machine that has this folder, with the rights to write to it";
    Failure::new(ErrorCode::ObjectStoreUnreachable, message, help)
}

/// The error of a lock that is taken; it names the holder by what the holder wrote into the file.
fn running(store: &str, work: Work<'_>, lock: &Path) -> Failure {
    if let Work::Load(_) = work {
        return Failure::new(
            ErrorCode::LoadRunning,
            format!("another load of graph {store:?} is under way"),
            "wait until it ends; a killed load does not stay in the way",
        );
    }
    let id = fs::read_to_string(lock).unwrap_or_default();
    let id = if id.is_empty() { "another push" } else { &id };
    Failure::new(
        ErrorCode::PushRunning,
        format!("{id} of store {store:?} is under way"),
        "wait until it ends; a killed one does not stay in the way",
    )
}

/// Removes a folder that may be there.
///
/// # Errors
/// `object_store_unusable`.
pub fn remove_folder(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(folder)(error)),
        _ => Ok(()),
    }
}

/// What is told about a file of the object store that cannot be used.
pub fn unusable(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let path = path.to_owned();
    move |error| {
        let message = format!("use {} of the object store: {error}", path.display());
        let help = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full: free some space",
            _ => "check the folder and its permissions",
        };
        Failure::new(ErrorCode::ObjectStoreUnusable, message, help)
    }
}

/// How many partitions the cluster has.
///
/// # Errors
/// `internal` if it does not say.
pub fn partition_count(topology: &TopologyDocument) -> Result<PartitionCount, Failure> {
    let partitions = topology.cluster.partitions;
    PartitionCount::new(partitions).ok_or_else(|| {
        Failure::new(ErrorCode::Internal, format!("the cluster says that it has {partitions} partitions"), "")
    })
}
