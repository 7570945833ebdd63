//! Built components that no version names any more go from the object store: every node has what it serves.

use kith_objects::{Objects, ObjectsError};
use kith_wire::documents::StoreDocument;
use std::collections::BTreeMap;

/// Removes what no version of the store needs. What was built after the newest version is left: it may be about to be
/// pushed. Done again whenever a version is made or dropped, so that nothing is lost if it fails. Blocks.
pub(super) fn remove_unnamed(object_store: &Objects, store: &StoreDocument) {
    let mut named: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let components = store.versions.iter().flat_map(|version| &version.components);
    // What lies elsewhere is somebody else's.
    for component in components.filter(|component| component.url.is_none()) {
        named.entry(&component.name).or_default().push(component.version);
    }
    for (component, versions) in named {
        let newest = versions.iter().max().copied().unwrap_or_default();
        let folder = object_store.join(&format!("{}/{component}", store.name));
        for version in built(&folder) {
            if version < newest && !versions.contains(&version) {
                remove(&folder.join(&version.to_string()));
            }
        }
    }
}

/// Removes all of a dropped store. Blocks.
pub(super) fn remove_all(object_store: &Objects, store: &str) {
    remove(&object_store.join(store));
}

fn remove(place: &Objects) {
    if let Err(error) = place.remove_all() {
        tell(place, &error);
    }
}

fn tell(place: &Objects, error: &ObjectsError) {
    let (place, cause) = (place.location(), std::error::Error::source(error).map(ToString::to_string));
    tracing::warn!(%error, cause, %place, "built files that nobody needs could not be removed");
}

fn built(folder: &Objects) -> Vec<u64> {
    let children = folder.children().unwrap_or_else(|error| {
        tell(folder, &error);
        Default::default()
    });
    children.iter().filter_map(|name| name.parse().ok()).collect()
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
        let objects = crate::place::objects(folder.path().to_str().unwrap()).unwrap();
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
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 11,
            versions: vec![version(10, "retained", 3), version(11, "current", 5)],
            running: None,
            frozen: None,
            history: vec![],
        };
        remove_unnamed(&objects, &store);
        assert_eq!([3, 4, 5, 6].map(|version| built(version).exists()), [true, false, true, true]);
        remove_all(&objects, "village");
        assert!(!folder.path().join("village").exists());
    }
}
