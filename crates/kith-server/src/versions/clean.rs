//! Built components that no version names any more go from the object store: every node has what it serves.

use kith_wire::documents::StoreDocument;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Removes what no version of the store needs. What was built after the newest version is left: it may be about to be
/// pushed. Done again whenever a version is made or dropped, so that nothing is lost if it fails. Blocks.
pub(super) fn remove_unnamed(object_store: &Path, store: &StoreDocument) {
    let mut named: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for component in store.versions.iter().flat_map(|version| &version.components) {
        named.entry(&component.name).or_default().push(component.version);
    }
    for (component, versions) in named {
        let newest = versions.iter().max().copied().unwrap_or_default();
        for (version, path) in built(&object_store.join(&store.name).join(component)) {
            if version < newest
                && !versions.contains(&version)
                && let Err(error) = fs::remove_dir_all(&path)
            {
                tracing::warn!(%error, path = %path.display(), "a component that nobody needs could not be removed");
            }
        }
    }
}

/// Removes all of a dropped store. Blocks.
pub(super) fn remove_all(object_store: &Path, store: &str) {
    let folder = object_store.join(store);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, path = %folder.display(), "a dropped store's files could not be removed");
        }
        _ => {}
    }
}

fn built(folder: &Path) -> Vec<(u64, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter_map(|path| Some((path.file_name()?.to_str()?.parse().ok()?, path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::{
        ComponentDocument, DOCUMENT_FORMAT, DefinitionDocument, HoldsDocument, VersionDocument,
    };

    #[test]
    fn what_a_version_names_or_may_come_to_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let built = |version: u64| folder.path().join(format!("village/connection/{version}"));
        for version in [3, 4, 5, 6] {
            fs::create_dir_all(built(version)).unwrap();
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
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 11,
            versions: vec![version(10, "retained", 3), version(11, "current", 5)],
            running: None,
            history: vec![],
        };
        remove_unnamed(folder.path(), &store);
        assert_eq!([3, 4, 5, 6].map(|version| built(version).exists()), [true, false, true, true]);
        remove_all(folder.path(), "village");
        assert!(!folder.path().join("village").exists());
    }
}
