//! The promises that hold whenever programs pause: whatever the metadata names can be fetched, byte for byte, and is what was pushed; in the end
//! nothing else is left.

use super::{
    client::read,
    model::{Content, KEYS_MAX},
    program::{NODES, ROUTERS},
    support::cluster::text,
    world::{PARTITIONS, Site, World, until},
};
use kith_engine::{FetchOptions, MANIFEST_NAME, Manifest, PATCH_NAME, ValuesReader, fetch};
use kith_files::objects::{IDENTITY_NAME, Objects};
use kith_types::{ErrorCode, PartitionId};
use kith_wire::{
    documents::{ComponentDocument, StoreDocument},
    v1::{self, store_request::Command as Ask},
};
use serde_json::Value;
use std::{collections::BTreeSet, fs, ops::ControlFlow, path::Path};

impl World {
    /// Waits until nothing is under way and all processes are there; the records of each cluster.
    pub async fn settled(&self) -> Vec<Vec<StoreDocument>> {
        let mut records = Vec::new();
        for site in &self.sites {
            let states = until("nothing is under way", async || {
                let all_up = (0..ROUTERS).all(|router| nodes_up(site, router) == NODES);
                let mut states = Vec::new();
                for router in 0..ROUTERS {
                    states = site.stores(router).await.map_err(|error| error.to_string())?;
                }
                let running = states.iter().find_map(|store| store.running.as_ref());
                match running {
                    None if all_up => Ok(states),
                    None => Err("not all nodes are up".to_owned()),
                    Some(running) => Err(format!("{} runs", running.push)),
                }
            });
            records.push(states.await);
        }
        records
    }

    /// Fetches every version that any metadata names, and reads what is served.
    pub async fn check(&self) {
        let mut versions = 0;
        for (site, records) in self.sites.iter().zip(self.settled().await) {
            for record in &records {
                versions += self.check_named(site, record).await;
                let current = record.current().map(|current| current.version);
                for router in 0..ROUTERS {
                    if let Some(current) = current {
                        self.check_served(site, router, &record.name, current).await;
                    }
                }
            }
        }
        eprintln!("checked {versions} versions that the metadata names");
        self.model.assert_right();
    }

    /// Fetches all versions that a record names; how many.
    async fn check_named(&self, site: &Site, record: &StoreDocument) -> usize {
        let name = site.of(&record.name);
        let mut count = 0;
        for version in &record.versions {
            for component in &version.components {
                let (objects, scratch) = (site.objects(&record.name, &component.folder()), self.scratch());
                let asked = component.clone();
                let fetched = tokio::task::spawn_blocking(move || fetched(&objects, &asked, scratch.path()));
                let label = self.model.label(&name, version.version, &component.folder());
                let content = fetched.await.expect("it does not panic");
                let checked = content.and_then(|content| self.model.check(&name, &content, label));
                if let Err(why) = checked {
                    let (version, state) = (version.version, &version.state);
                    self.model.wrong(format!("version {version} of {name}, which is {state}: {why}"));
                }
                count += 1;
            }
        }
        count
    }

    async fn check_served(&self, site: &Site, router: usize, store: &str, version: u64) {
        let name = site.of(store);
        let (served, content) = until("a store answers", async || {
            let answer = read(site, router, store).await.map_err(|error| error.to_string())?;
            // Another router may have changed it a moment ago.
            if answer.0 == version { Ok(answer) } else { Err(format!("{} serves, not {version}", answer.0)) }
        })
        .await;
        if let Err(why) = self.model.check(&name, &content, self.model.label(&name, served, "")) {
            self.model.wrong(format!("version {served} of {name} is served, and {why}"));
        }
    }

    /// Has every version that any metadata names serve, and reads it.
    pub async fn check_all_serve(&self) {
        for (site, records) in self.sites.iter().zip(self.settled().await) {
            for record in &records {
                // None shall go because another one serves.
                let retain = Ask::Alter(v1::AlterStore { retain: Some(100), ..Default::default() });
                site.ask(0, &record.name, retain).await.expect("nobody is in the way");
                for version in record.versions.iter().filter(|version| !version.components.is_empty()) {
                    let swap = Ask::Swap(v1::SwapStore { to: version.version, force: true });
                    match site.ask(0, &record.name, swap).await {
                        Err(error) if error.code() != ErrorCode::VersionCurrent => {
                            let (version, name) = (version.version, site.of(&record.name));
                            self.model.wrong(format!("version {version} of {name} cannot serve: {error}"));
                            continue;
                        }
                        _ => {}
                    }
                    for router in 0..ROUTERS {
                        self.check_served(site, router, &record.name, version.version).await;
                    }
                    self.model.count("swap, at the end", "done");
                }
                let verify = ["store", "verify", &record.name, "--deep", "-o", "json"];
                let verified = site.cluster.kith(&verify).output().expect("kith runs");
                if record.current().is_some() && !verified.status.success() {
                    self.model.wrong(format!("{} is not whole: {}", site.of(&record.name), text(&verified)));
                }
            }
        }
        self.model.assert_right();
    }

    /// Waits until nothing lies in the bucket that nobody names.
    pub async fn check_nothing_left(&self) {
        let all = self.settled().await;
        for (site, records) in self.sites.iter().zip(&all) {
            until("the bucket has nothing that nobody names", async || {
                let (objects, records) = (site.objects.clone(), records.clone());
                let named = tokio::task::spawn_blocking(move || unnamed(&objects, &records));
                nothing(&named.await.expect("it does not panic")?)
            })
            .await;
        }
        assert_eq!(self.settled().await, all, "nothing changed meanwhile");
    }

    /// Waits until no node holds anything that nobody names.
    pub async fn check_nothing_held(&self) {
        for (site, records) in self.sites.iter().zip(self.settled().await) {
            until("nodes have nothing that nobody names", async || {
                let nodes =
                    (0..NODES).map(|node| site.cluster.data().join(format!("node-{node:03}/components")));
                nothing(&nodes.flat_map(|node| held_unnamed(&node, &records)).collect::<Vec<_>>())
            })
            .await;
        }
    }
}

fn nothing(left: &[String]) -> Result<(), String> {
    match left {
        [] => Ok(()),
        left => Err(format!("{} things are left: {:?}", left.len(), &left[..left.len().min(8)])),
    }
}

/// How many nodes a router sees.
fn nodes_up(site: &Site, router: usize) -> usize {
    let status = ["cluster", "status", "--router", site.routers[router].addr(), "-o", "json"];
    let status = crate::support::cluster::kith(&status).output().expect("kith runs");
    let answer: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
    let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
    nodes.iter().filter(|node| node["state"] == "up").count()
}

/// The content of a component, fetched from the bucket with every byte proven against the manifest that the metadata names.
fn fetched(objects: &Objects, component: &ComponentDocument, scratch: &Path) -> Result<Content, String> {
    let (target, partitions) =
        (scratch.join("fetched"), (0..PARTITIONS).map(PartitionId).collect::<Vec<_>>());
    let manifest_hash = Some(component.manifest_hash.clone());
    let options = FetchOptions { manifest_hash, ..Default::default() };
    let manifest = fetch(objects, &target, &partitions, &options, &mut |_| ControlFlow::Continue(()));
    let manifest = manifest.map_err(|error| format!("it cannot be fetched: {error:?}"))?;
    let reader =
        ValuesReader::open(&target, &partitions).map_err(|error| format!("it cannot be opened: {error}"))?;
    let mut content = Content::new();
    for key in 0..KEYS_MAX {
        let value = reader.get(&key.to_le_bytes()).map_err(|error| format!("key {key}: {error}"))?;
        content.extend(value.map(|value| (key, String::from_utf8_lossy(&value).into_owned())));
    }
    let records = manifest.values().map_or(0, |values| values.counts.records);
    match records == content.len() as u64 {
        true => Ok(content),
        false => Err(format!("it has {records} records, of which {} are known", content.len())),
    }
}

/// Objects that no record names.
fn unnamed(objects: &Objects, records: &[StoreDocument]) -> Result<Vec<String>, String> {
    let mut named = BTreeSet::from([IDENTITY_NAME.to_owned()]);
    for record in records {
        for component in record.versions.iter().flat_map(|version| &version.components) {
            let folder = format!("{}/values/{}", record.name, component.folder());
            let manifest = objects.join(&folder).manifest().map_err(|error| error.to_string())?;
            named.extend(files_of(&manifest).map(|file| format!("{folder}/{file}")));
        }
    }
    let listed = objects.list().map_err(|error| error.to_string())?;
    Ok(listed.into_iter().map(|listed| listed.name).filter(|name| !named.contains(name)).collect())
}

fn files_of(manifest: &Manifest) -> impl Iterator<Item = String> + use<> {
    let packs = manifest.packs().into_iter().map(|pack| pack.name);
    packs.chain([MANIFEST_NAME.to_owned(), PATCH_NAME.to_owned()])
}

/// Versions of any store in a node's folder that no record names.
fn held_unnamed(components: &Path, records: &[StoreDocument]) -> Vec<String> {
    let named: BTreeSet<_> = records
        .iter()
        .flat_map(|record| record.versions.iter().map(move |version| (record, version)))
        .flat_map(|(record, version)| version.components.iter().map(move |it| (record, it)))
        .map(|(record, component)| {
            components.join(&record.name).join("values").join(component.version.to_string())
        })
        .collect();
    let below = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let versions = below(components).into_iter().flat_map(|store| below(&store.join("values")));
    versions.filter(|path| !named.contains(path)).map(|path| path.display().to_string()).collect()
}
