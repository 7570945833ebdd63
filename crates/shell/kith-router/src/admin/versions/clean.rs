//! Removes built components from the object store once no version names them; by then every node has what it serves.
//!
//! In a bucket, several pushes can upload at once, so a folder that no record names may belong to a push that is about to be
//! handed over. Such a folder is removed only if the current change dropped its version, or if nothing was written to it for
//! [`UploadSettings::orphan_age`](crate::admin::UploadSettings::orphan_age). A push that old is refused long before that.

use crate::admin::{ClusterHandle, UploadSettings};
use kith_cluster::metadata::records::read;
use kith_files::objects::{Objects, ObjectsError};
use kith_topology::versions::Effect;
use kith_types::{check_component_name, check_store_name};
use kith_wire::documents::{ClusterDocument, StoreDocument};
use std::{collections::BTreeSet, sync::Arc, time::SystemTime};
use tokio::runtime::Handle;

/// Components and their folders in the cluster's object store.
type Named = BTreeSet<(String, String)>;

/// Removes built files of the cluster's object store that no version needs any more.
#[derive(Clone)]
pub(super) struct Cleaner {
    pub cluster: ClusterHandle,
    /// The time limits of uploads.
    pub uploads: UploadSettings,
}

impl Cleaner {
    /// Removes the built files of the versions that a change dropped, if it dropped any.
    pub async fn clean_dropped(&self, before: StoreDocument, store: StoreDocument, effects: &[Effect]) {
        if effects.iter().any(|effect| matches!(effect, Effect::Drop { .. })) {
            self.clean(before, store).await;
        }
    }

    /// Removes everything of a store that was dropped.
    pub async fn clean_store(&self, store: StoreDocument) {
        let orphaned = self.uploads.orphaned();
        self.with_objects(move |objects| remove_dropped(objects, &store, orphaned)).await;
    }

    /// Removes folders that no record names and that were not written to for long, for all stores.
    pub async fn sweep(&self) {
        let (metadata, runtime) = (Arc::clone(&self.cluster.metadata), Handle::current());
        let orphaned = self.uploads.orphaned();
        self.with_objects(move |objects| {
            let record = |store: &str| {
                let known = runtime.block_on(read(&*metadata, store));
                known.map(|known| known.map(|known| known.document))
            };
            if let Err(error) = sweep(objects, record, orphaned) {
                let error = error.to_status("");
                tracing::warn!(
                    error = error.message(),
                    "the object store could not be cleaned up; a later attempt follows"
                );
            }
        })
        .await;
    }

    /// Removes built files that no version needs.
    pub async fn clean(&self, before: StoreDocument, store: StoreDocument) {
        let orphaned = self.uploads.orphaned();
        self.with_objects(move |objects| remove_unnamed(objects, &before, &store, orphaned)).await;
    }

    /// Runs `work` on the object store, if it is this cluster's, on a thread that may block. A failure is logged; the next
    /// clean-up tries again.
    async fn with_objects(&self, work: impl FnOnce(&Objects) + Send + 'static) {
        let ClusterDocument { object_store: location, cluster_id, .. } = self.cluster.cluster();
        let done = tokio::task::spawn_blocking(move || match Objects::named(&location) {
            Ok(objects) => match objects.claim(&cluster_id) {
                Ok(()) => work(&objects),
                Err(error) => tracing::error!(%error, location, "nothing is removed from the object store"),
            },
            Err(error) => tracing::warn!(%error, location, "the object store cannot be cleaned up"),
        });
        if let Err(error) = done.await {
            tracing::error!(%error, "a clean-up ended unexpectedly");
        }
    }
}

/// Returns the folders that a store's versions name in the object store. Components elsewhere do not belong to the cluster.
fn named(store: &StoreDocument) -> Named {
    let components = store.versions.iter().flat_map(|version| &version.components);
    let own = components.filter(|component| component.url.is_none());
    own.map(|component| (component.name.clone(), component.folder())).collect()
}

/// Removes what the change from `before` to `store` dropped, and leftovers: folders that no record names and that were not
/// written to since `orphaned`. This runs again whenever a version is made or dropped, so a failure loses nothing. Blocks.
fn remove_unnamed(objects: &Objects, before: &StoreDocument, store: &StoreDocument, orphaned: SystemTime) {
    let named = named(store);
    let dropped = self::named(before).difference(&named).cloned().collect();
    remove(objects, &store.name, &named, &dropped, orphaned);
}

/// Removes everything of a dropped store, except uploads that are in progress for another store of its name. Blocks.
fn remove_dropped(objects: &Objects, store: &StoreDocument, orphaned: SystemTime) {
    let of_store = objects.join(&store.name);
    if of_store.folder().is_some() {
        // A folder of this machine is written only under a lock.
        remove_all(&of_store);
    } else {
        remove(objects, &store.name, &Named::new(), &named(store), orphaned);
    }
}

/// Removes the leftovers of every store, including stores that no longer exist. `record` returns the metadata record of a
/// store, or an error. Blocks.
fn sweep<E>(
    objects: &Objects,
    mut record: impl FnMut(&str) -> Result<Option<StoreDocument>, E>,
    orphaned: SystemTime,
) -> Result<(), E> {
    for store in children(objects).iter().filter(|name| check_store_name(name).is_ok()) {
        let named = record(store)?.map(|store| named(&store)).unwrap_or_default();
        remove(objects, store, &named, &Named::new(), orphaned);
    }
    Ok(())
}

fn remove(objects: &Objects, store: &str, named: &Named, dropped: &Named, orphaned: SystemTime) {
    let of_store = objects.join(store);
    for component in children(&of_store).iter().filter(|name| check_component_name(name).is_ok()) {
        let newest = named.iter().filter(|(name, _)| name == component);
        let newest = newest.filter_map(|(_, folder)| version_of(folder)).max().unwrap_or_default();
        let folders = of_store.join(component);
        for folder in children(&folders) {
            let entry = (component.clone(), folder);
            let Some(version) = version_of(&entry.1).filter(|_| !named.contains(&entry)) else { continue };
            let built = folders.join(&entry.1);
            // A numbered folder above the newest version may be a build on this machine that is about to be pushed.
            let is_left = if is_numbered(&entry.1) { version < newest } else { is_orphan(&built, orphaned) };
            if dropped.contains(&entry) || is_left {
                remove_all(&built);
            }
        }
    }
}

/// Returns the version number of a folder, which is named `7` or `7-push-…`; `None` if the name is not of a version.
fn version_of(folder: &str) -> Option<u64> {
    folder.split('-').next()?.parse().ok()
}

fn is_numbered(folder: &str) -> bool {
    folder.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a folder was last written to before `orphaned`.
fn is_orphan(folder: &Objects, orphaned: SystemTime) -> bool {
    let listed = folder.list().unwrap_or_else(|error| {
        tell(folder, &error);
        Vec::new()
    });
    let last = listed.iter().map(|listed| listed.modified).max();
    last.is_some_and(|last| last < orphaned)
}

fn remove_all(folder: &Objects) {
    if let Err(error) = folder.remove_all() {
        tell(folder, &error);
    }
}

fn tell(folder: &Objects, error: &ObjectsError) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(%error, cause, place = %folder.location(), "built files that are no longer needed could not be removed");
}

fn children(folder: &Objects) -> BTreeSet<String> {
    folder.children().unwrap_or_else(|error| {
        tell(folder, &error);
        BTreeSet::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::{
        ComponentDocument, DOCUMENT_FORMAT, DefinitionDocument, HoldsDocument, VersionDocument,
    };
    use std::time::Duration;

    #[test]
    fn what_a_version_names_or_may_come_to_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::named(folder.path().to_str().unwrap()).unwrap();
        let built = |version: u64| folder.path().join(format!("village/connection/{version}"));
        for version in [3, 4, 5, 6] {
            std::fs::create_dir_all(built(version)).unwrap();
        }
        let version = |version: u64, state: &str, component: u64| VersionDocument {
            version,
            state: state.to_owned(),
            components: vec![ComponentDocument {
                name: "connection".into(),
                role: "undirected".into(),
                version: component,
                manifest_hash: String::new(),
                columns: vec![],
                members: 0,
                edges: 0,
                bytes: 0,
                loaded_at: 0,
                schema: None,
                folder: None,
                url: None,
            }],
            records: 0,
            bytes: 0,
            pushed_at: 0,
            held: false,
            excluded: vec![],
        };
        let store = StoreDocument {
            format: DOCUMENT_FORMAT,
            name: "village".to_owned(),
            charged_to: String::new(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 11,
            versions: vec![version(10, "retained", 3), version(11, "current", 5)],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: vec![],
        };
        remove_unnamed(&objects, &store, &store, SystemTime::UNIX_EPOCH);
        assert_eq!([3, 4, 5, 6].map(|version| built(version).exists()), [true, false, true, true]);
        remove_dropped(&objects, &store, SystemTime::UNIX_EPOCH);
        assert!(!folder.path().join("village").exists());
    }

    #[test]
    fn a_folder_of_a_push_goes_when_its_version_is_dropped_or_it_is_long_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::named(folder.path().to_str().unwrap()).unwrap();
        let names = ["7-push-a", "7-push-b", "8-push-c", "9-push-d"];
        let built = |name: &str| folder.path().join("kv/values").join(name);
        for name in names {
            std::fs::create_dir_all(built(name)).unwrap();
            std::fs::write(built(name).join("manifest.json"), "{}").unwrap();
        }
        let store = |folders: &[&str]| {
            let version = |folder: &&str| {
                serde_json::json!({
                    "version": version_of(folder), "state": "retained", "records": 0, "bytes": 0, "pushed_at": 0,
                    "components": [{
                        "name": "values", "role": "values", "version": version_of(folder), "manifest_hash": "",
                        "columns": [], "members": 0, "edges": 0, "bytes": 0, "loaded_at": 0, "folder": folder,
                    }],
                })
            };
            let versions: Vec<_> = folders.iter().map(version).collect();
            let definition = DefinitionDocument::new(HoldsDocument::Graph);
            let record = serde_json::json!({
                "format": DOCUMENT_FORMAT, "name": "kv", "definition": definition, "version_last": 9, "versions": versions,
            });
            serde_json::from_value::<StoreDocument>(record).unwrap()
        };
        let (long_ago, soon) = (SystemTime::UNIX_EPOCH, SystemTime::now() + Duration::from_secs(60));
        let (before, after) = (store(&["7-push-a", "9-push-d"]), store(&["9-push-d"]));
        // The loser of a race and an upload under way have names of their own.
        remove_unnamed(&objects, &before, &after, long_ago);
        assert_eq!(names.map(|name| built(name).exists()), [false, true, true, true]);
        let record = |name: &str| Ok::<_, ()>((name == "kv").then(|| after.clone()));
        sweep(&objects, record, long_ago).unwrap();
        assert!(built("7-push-b").exists() && built("8-push-c").exists());
        sweep(&objects, record, soon).unwrap();
        assert_eq!(names.map(|name| built(name).exists()), [false, false, false, true]);
        assert_eq!(sweep(&objects, |_| Err("away"), soon), Err("away"));
        assert!(built("9-push-d").exists(), "nothing goes while the metadata cannot be asked");
        sweep(&objects, |_| Ok::<_, ()>(None), soon).unwrap();
        assert!(!built("9-push-d").exists(), "its store is no more");
    }
}
