//! A store's folder in the cluster's object store: one load or push at a time, and nothing left of those that were
//! killed.
//!
//! If the object store is a bucket, what is built gathers in a temporary folder of the same shape and goes up when it is whole. A
//! bucket has no locks: there each push writes to folders of its own, named by its id, and the cluster admits one push.
//!
//! While one is under way `<store>/.unfinished` names the version that it builds. Whoever finds the file knows that the
//! one before was killed: what that one built and the cluster does not name is removed.

use super::{
    Meter,
    place::{place, refused, version_here},
};
use crate::{failure::Failure, store::build::fault::chain};
use kith_objects::{ClaimError, Objects};
use kith_server::private::keep_as_private_as;
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::documents::{ClusterDocument, ComponentDocument, StoreDocument};
use std::{
    borrow::Cow,
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

const LOCK_FILE: &str = ".lock";
const UNFINISHED_FILE: &str = ".unfinished";
/// Where the engine builds a component before it gets its name.
const STAGING_FOLDER: &str = ".staging";
/// Where a version is downloaded to that another one is made of.
const BASE_FOLDER: &str = ".base";

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

/// A store's folder in it, for one load or push; unlocked when dropped.
#[derive(Debug)]
pub struct LockedStore {
    /// Where versions are built: the object store, or the temporary folder.
    objects: PathBuf,
    /// The store's folder in it.
    folder: PathBuf,
    /// Held for its lock; holds the id of the push that holds it. `None` in a bucket.
    lock: Option<File>,
    /// The store's place in a bucket.
    bucket: Option<Bucket>,
}

/// A store's place in a bucket, and the folder where its versions are built, removed at the end.
#[derive(Debug)]
struct Bucket {
    objects: Objects,
    /// The id of the push: its folders are named by it.
    push: String,
    _built: tempfile::TempDir,
}

impl Bucket {
    /// Where a version of a component goes. No other push has a folder of this name: one that fails removes only its own.
    fn folder(&self, version: u64) -> String {
        format!("{version}-{}", self.push)
    }
}

impl ObjectStore {
    /// The object store that the cluster names, made if the folder around it is there. What this process writes from then on is as
    /// private as that folder.
    ///
    /// # Errors
    /// `object_store_unreachable` if it is not on this machine, `object_store_taken` if it is another cluster's.
    pub fn open(cluster: &ClusterDocument) -> Result<Self, Failure> {
        let objects = place(&cluster.object_store)?;
        if let Some(folder) = objects.folder() {
            keep_as_private_as(folder).map_err(|error| unreachable(folder, &error))?;
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
        let bucket = Bucket { objects: self.objects.join(store), push: push.to_owned(), _built: built };
        let objects = bucket._built.path().to_owned();
        Ok(LockedStore { objects, folder, lock: None, bucket: Some(bucket) })
    }
}

/// What is told about a folder that this machine does not have, or may not write to.
fn unreachable(folder: &Path, error: &dyn std::error::Error) -> Failure {
    let message = format!("the cluster's object store {} cannot be used: {}", folder.display(), chain(error));
    let help = "run this on a machine that has this folder, with the rights to write to it";
    Failure::new(ErrorCode::ObjectStoreUnreachable, message, help)
}

/// Whoever holds the lock is told by what it wrote there.
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

impl Drop for LockedStore {
    fn drop(&mut self) {
        // The id is told only to whoever finds the lock taken; a stale one harms nobody.
        if let Some(lock) = &self.lock {
            let _ = lock.set_len(0);
        }
        let _ = fs::remove_dir_all(self.folder.join(BASE_FOLDER));
    }
}

impl LockedStore {
    /// Where versions are built, in the object store's layout.
    pub fn objects(&self) -> &Path {
        &self.objects
    }

    /// The folder of the versions of one of the store's components.
    pub fn component(&self, component: &str) -> PathBuf {
        self.folder.join(component)
    }

    /// Removes what a killed load or push built, unless it was killed after its commit.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn clear_unfinished(&self, store: Option<&StoreDocument>) -> Result<(), Failure> {
        let marker = self.folder.join(UNFINISHED_FILE);
        let Ok(text) = fs::read_to_string(&marker) else { return Ok(()) };
        let version: u64 = text.trim().parse().unwrap_or_default();
        let is_named = component_versions(store).any(|named| named == version);
        for component in self.components()? {
            remove_folder(&component.join(STAGING_FOLDER))?;
            if !is_named {
                remove_folder(&component.join(version.to_string()))?;
            }
            self.remove_uploaded(store, &component, version)?;
        }
        fs::remove_file(&marker).map_err(unusable(&marker))
    }

    /// A version above all that the store or its folder has: the time, unless clocks went back.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn next_version(&self, store: Option<&StoreDocument>) -> Result<u64, Failure> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let used = store.map_or(0, |store| store.version_last);
        let newest = component_versions(store).max().unwrap_or_default().max(used);
        let above = StoreVersion(newest.max(now.saturating_sub(1)));
        let next = kith_engine::load::next_version(&self.objects, &self.name(), above);
        Ok(next.map_err(unusable(&self.folder))?.0)
    }

    /// Brings what was built of a component to its place in the object store; in a folder it is there.
    ///
    /// # Errors
    /// `version_taken`, `object_store_unreachable`; it is no version there then.
    pub fn upload(
        &self,
        component: &str,
        version: u64,
        folder: &Path,
        meter: &mut Meter,
    ) -> Result<(), Failure> {
        self.upload_on(None, component, version, folder, meter)
    }

    /// As [`LockedStore::upload`], of a version that was made of the one in `base`: what both have in common stays in the object store.
    ///
    /// # Errors
    /// As [`LockedStore::upload`].
    pub fn upload_on(
        &self,
        base: Option<&Objects>,
        component: &str,
        version: u64,
        folder: &Path,
        meter: &mut Meter,
    ) -> Result<(), Failure> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let place = bucket.objects.join(&format!("{component}/{}", bucket.folder(version)));
        let stage = format!("uploading {component}");
        let sent =
            place.upload_version_on(base, folder, &mut |done, total| meter.on_bytes(&stage, done, total));
        sent.map(|_| ()).map_err(|error| refused(&error))
    }

    /// The folder that [`LockedStore::upload`] brings a version to; `None`: that of its number.
    pub fn folder_of(&self, version: u64) -> Option<String> {
        self.bucket.as_ref().map(|bucket| bucket.folder(version))
    }

    /// Whether the object store is a bucket.
    pub fn is_bucket(&self) -> bool {
        self.bucket.is_some()
    }

    /// What a failed load or push uploaded: its own folder, unless the cluster names it after all.
    fn remove_uploaded(
        &self,
        store: Option<&StoreDocument>,
        component: &Path,
        version: u64,
    ) -> Result<(), Failure> {
        let (Some(bucket), Some(name)) = (&self.bucket, component.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(());
        };
        let folder = bucket.folder(version);
        let mut named = store.into_iter().flat_map(|store| &store.versions).flat_map(|it| &it.components);
        if named.any(|named| named.name == name && named.folder() == folder) {
            return Ok(());
        }
        let place = bucket.objects.join(&format!("{name}/{folder}"));
        place.remove_all().map_err(|error| refused(&error))
    }

    /// A folder with a version of one of the store's components, as it was built; downloaded and proven if it is
    /// not on this machine, and then where it lies.
    ///
    /// # Errors
    /// `version_damaged`, or what the object store says.
    pub fn built(&self, component: &ComponentDocument) -> Result<(PathBuf, Option<Objects>), Failure> {
        let here = self.component(&component.name).join(component.version.to_string());
        let place = match (&component.url, &self.bucket) {
            (None, None) => return Ok((here, None)),
            (Some(url), _) => place(url)?,
            (None, Some(bucket)) => {
                bucket.objects.join(&format!("{}/{}", component.name, component.folder()))
            }
        };
        let folder = self.folder.join(BASE_FOLDER).join(component.version.to_string());
        let (folder, manifest) = version_here(&place, &folder)?;
        if manifest.hash() == component.manifest_hash {
            return Ok((folder, Some(place)));
        }
        let message = format!("{} is not the version that is served", place.location());
        Err(Failure::new(ErrorCode::VersionDamaged, message, "push all rows, without --delta"))
    }

    fn name(&self) -> Cow<'_, str> {
        self.folder.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Says that a version is being built, in case this process is killed.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn mark_unfinished(&self, version: u64) -> Result<(), Failure> {
        let marker = self.folder.join(UNFINISHED_FILE);
        fs::write(&marker, format!("{version}\n")).map_err(unusable(&marker))
    }

    /// Says that nothing is left to clear.
    pub fn mark_finished(&self) {
        // A marker that stays costs whoever comes next a look at the record, nothing else.
        let _ = fs::remove_file(self.folder.join(UNFINISHED_FILE));
    }

    fn components(&self) -> Result<Vec<PathBuf>, Failure> {
        let entries = fs::read_dir(&self.folder).map_err(unusable(&self.folder))?;
        Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
    }
}

/// The versions of the components of every version that the cluster knows: also those that can be rolled back to.
fn component_versions(store: Option<&StoreDocument>) -> impl Iterator<Item = u64> {
    let versions = store.into_iter().flat_map(|store| &store.versions);
    versions.flat_map(|version| &version.components).map(|component| component.version)
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

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::{
        ComponentDocument, DOCUMENT_FORMAT, DefinitionDocument, HoldsDocument, VersionDocument,
    };

    fn store(folder: &Path) -> ObjectStore {
        ObjectStore { objects: place(folder.to_str().unwrap()).unwrap() }
    }

    fn graph(version: u64) -> StoreDocument {
        let component = ComponentDocument {
            name: "connection".to_owned(),
            role: "undirected".to_owned(),
            version,
            manifest_hash: String::new(),
            columns: Vec::new(),
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
            schema: None,
            folder: None,
            url: None,
        };
        let version = VersionDocument {
            version,
            state: "retained".to_owned(),
            components: vec![component],
            records: 0,
            bytes: 0,
            pushed_at: 0,
            held: false,
            excluded: Vec::new(),
        };
        StoreDocument {
            format: DOCUMENT_FORMAT,
            name: "v".to_owned(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: version.version,
            versions: vec![version],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: Vec::new(),
        }
    }

    #[test]
    fn two_loads_of_one_graph_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let held = store(folder.path()).lock("v", Work::Load("load-1")).unwrap();
        assert_eq!(
            store(folder.path()).lock("v", Work::Load("load-1")).unwrap_err().code,
            ErrorCode::LoadRunning
        );
        store(folder.path()).lock("w", Work::Load("load-1")).unwrap();
        drop(held);
        store(folder.path()).lock("v", Work::Load("load-1")).unwrap();
    }

    #[test]
    fn a_second_push_is_told_the_id_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let held = store(folder.path()).lock("people", Work::Push("push-1")).unwrap();
        let told = store(folder.path()).lock("people", Work::Push("push-2")).unwrap_err();
        assert_eq!(told.code, ErrorCode::PushRunning);
        assert_eq!(told.message, "push-1 of store \"people\" is under way");
        drop(held);
        store(folder.path()).lock("people", Work::Push("push-2")).unwrap();
    }

    #[test]
    fn what_a_killed_load_built_is_removed_and_what_serves_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let locked = store(folder.path()).lock("v", Work::Load("load-1")).unwrap();
        let built = |version: u64| folder.path().join("v/connection").join(version.to_string());
        for version in [5, 9] {
            fs::create_dir_all(built(version)).unwrap();
        }
        let staging = folder.path().join("v/school/.staging");
        fs::create_dir_all(&staging).unwrap();
        locked.mark_unfinished(9).unwrap();
        locked.clear_unfinished(Some(&graph(5))).unwrap();
        assert!(built(5).exists() && !built(9).exists() && !staging.exists());
        // Killed between its commit and its end: that version serves.
        locked.mark_unfinished(5).unwrap();
        locked.clear_unfinished(Some(&graph(5))).unwrap();
        assert!(built(5).exists());
        // Without a marker nothing is touched: the topology may lag behind a commit.
        locked.clear_unfinished(None).unwrap();
        assert!(built(5).exists());
    }

    #[test]
    fn versions_grow_whatever_the_clock_says() {
        let folder = tempfile::tempdir().unwrap();
        let locked = store(folder.path()).lock("v", Work::Load("load-1")).unwrap();
        let now = locked.next_version(None).unwrap();
        assert!(1_700_000_000_000 < now, "milliseconds since 1970: {now}");
        let ahead = now + 1_000_000_000;
        assert_eq!(locked.next_version(Some(&graph(ahead))), Ok(ahead + 1));
        fs::create_dir_all(folder.path().join("v/school").join((ahead + 5).to_string())).unwrap();
        assert_eq!(locked.next_version(Some(&graph(ahead))), Ok(ahead + 6));
    }

    #[test]
    fn an_object_store_elsewhere_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: String::new(),
            epoch: 1,
            partitions: 24,
            groups: Vec::new(),
            object_store: folder.path().join("objects").display().to_string(),
            strategy: String::new(),
            listed: Vec::new(),
            partition_epochs: Vec::new(),
        };
        ObjectStore::open(&cluster).unwrap();
        ObjectStore::open(&cluster).unwrap();
        cluster.object_store = folder.path().join("not/here").display().to_string();
        assert_eq!(ObjectStore::open(&cluster).unwrap_err().code, ErrorCode::ObjectStoreUnreachable);
    }
}
