//! Pushes by `kith store push`, and by a program that builds, uploads and asks a router by itself, as clients in other languages do.

use super::{
    client::{Client, Outcome, code, now},
    model::{Content, Label},
    program::{Fate, Hands, ROUTERS},
    world::{PARTITIONS, Site},
};
use kith_client::{QueryError, RouterClient};
use kith_engine::{KeyType, Manifest, ValueType};
use kith_files::objects::Objects;
use kith_files::{ValuesBuilder, ValuesOptions};
use kith_types::{ErrorCode, PartitionCount, StoreVersion};
use kith_wire::{
    documents::ComponentDocument,
    v1::{self, store_request::Command as Ask},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{fs, path::Path, process::Stdio, time::Duration};
use tokio::{io::AsyncReadExt, process::Command};

/// No push takes longer, on a machine that does other things too.
const PUSH_TIMEOUT: Duration = Duration::from_secs(180);

/// A push, as it is asked for.
#[derive(Clone, Copy)]
pub struct Push {
    pub label: Label,
    /// `None`: the time.
    pub version: Option<u64>,
    pub from_peers: bool,
    pub fate: Fate,
}

/// A version in the bucket, and how it is handed over.
struct Offer {
    objects: Objects,
    folder: String,
    request: v1::PushRequest,
}

impl Client {
    pub async fn push(&mut self, site: &Site, store: &str, hands: Hands, push: Push) -> Outcome {
        let pushed = async {
            match hands {
                Hands::Command => self.push_by_command(site, store, push).await,
                Hands::Program => self.push_by_program(site, store, push).await,
            }
        };
        tokio::time::timeout(PUSH_TIMEOUT, pushed).await.unwrap_or_else(|_| Err("push_hangs".to_owned()))
    }

    /// Runs `kith store push`.
    async fn push_by_command(&mut self, site: &Site, store: &str, push: Push) -> Outcome {
        let (world, scratch) = (self.world(), self.world().scratch());
        let csv = scratch.path().join("rows.csv");
        let rows = world.model.rows(push.label);
        let lines: String = rows.iter().map(|(key, value)| format!("{key},{value}\n")).collect();
        fs::write(&csv, format!("key,value\n{lines}")).expect("written");
        let version = push.version.map(|version| version.to_string());
        let mut arguments = vec!["store", "push", store, csv.to_str().expect("UTF-8"), "-o", "json"];
        arguments.extend(version.iter().flat_map(|version| ["--version", version]));
        arguments.extend(push.from_peers.then_some("--from-peers"));
        arguments.extend(world.model.is_delta(push.label).then_some("--delta"));
        let mut command = site.cluster.kith(&arguments);
        command.env("TMPDIR", world.temporary());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Command::from(command).kill_on_drop(true).spawn().expect("kith starts");
        let (pid, mut output) = (child.id(), child.stdout.take().expect("it is piped"));
        let mut said = Vec::new();
        // It is waited for afterwards: until then its id is nobody else's.
        let (read, ()) = tokio::join!(output.read_to_end(&mut said), self.meets(site, store, push.fate, pid));
        read.expect("its output can be read");
        child.wait().await.expect("it ends");
        let Ok(said) = serde_json::from_slice::<Value>(&said) else { return Ok("left") };
        let (Some(version), Some(id)) = (said["version"].as_u64(), said["push"].as_str()) else {
            return Err(said["error"]["code"].as_str().unwrap_or("internal").to_owned());
        };
        world.model.pushes(id, push.label);
        world.model.serves(&site.of(store), version, push.label);
        Ok("served")
    }

    /// Does to the push of a command what is to become of it.
    async fn meets(&mut self, site: &Site, store: &str, fate: Fate, pid: Option<u32>) {
        let (Fate::Killed(after) | Fate::Interrupted(after) | Fate::Cancelled(after)) = fate else { return };
        tokio::time::sleep(Duration::from_millis(after)).await;
        let send = |signal| {
            let pid = pid.and_then(|pid| Pid::from_raw(pid as i32));
            // It may have ended.
            pid.map(|pid| kill_process(pid, signal).is_ok());
        };
        match fate {
            Fate::Killed(_) => send(Signal::KILL),
            Fate::Interrupted(_) => send(Signal::INT),
            _ => {
                let cancel = Ask::Cancel(v1::CancelPush { push: String::new() });
                // There may be none by now.
                let _ = site.ask(self.router(), store, cancel).await;
            }
        }
    }

    /// Builds, uploads and hands over in this process.
    async fn push_by_program(&mut self, site: &Site, store: &str, push: Push) -> Outcome {
        let (id, router, canceller) = (self.push_id(), self.router(), self.router());
        let pushed = async {
            let offer = self.offer(site, store, &id, push).await?;
            let served = hand_over(&site.routers[router], &offer.request).await;
            self.conclude(site, store, &offer, served).await
        };
        match push.fate {
            // An upload goes on for a moment, as one of a process that is frozen before it is killed.
            Fate::Killed(after) => {
                let ended = tokio::time::timeout(Duration::from_millis(after), pushed).await;
                ended.unwrap_or(Ok("left"))
            }
            Fate::Cancelled(after) => {
                let cancel = async {
                    tokio::time::sleep(Duration::from_millis(after)).await;
                    let cancel = Ask::Cancel(v1::CancelPush { push: id.clone() });
                    let _ = site.ask(canceller, store, cancel).await;
                };
                tokio::join!(pushed, cancel).0
            }
            _ => pushed.await,
        }
    }

    fn push_id(&mut self) -> String {
        format!("push-{:016x}", self.number())
    }

    /// Builds and uploads.
    async fn offer(&self, site: &Site, store: &str, id: &str, push: Push) -> Result<Offer, String> {
        let (world, number) = (self.world(), push.version.unwrap_or_else(now));
        let folder = format!("{number}-{id}");
        let (rows, scratch) = (world.model.rows(push.label), world.scratch());
        world.model.pushes(id, push.label);
        let (objects, name) = (site.objects(store, &folder), store.to_owned());
        let uploaded = tokio::task::spawn_blocking(move || {
            let manifest = build(scratch.path(), &name, number, &rows);
            let built = scratch.path().join("values").join(number.to_string());
            objects.version().upload(&built, &mut |_, _| ()).map(|_| (objects, manifest))
        });
        let (objects, manifest) =
            uploaded.await.expect("it does not panic").map_err(|_| "object_store_unreachable".to_owned())?;
        let bytes = manifest.files.iter().map(|file| file.bytes).sum();
        let records = manifest.values().expect("values").counts.records;
        let component = component(number, manifest.hash(), (records, bytes), folder.clone());
        let request = v1::PushRequest {
            store: store.to_owned(),
            push: id.to_owned(),
            who: "programs".to_owned(),
            components: serde_json::to_vec(&[component]).expect("documents are JSON").into(),
            version: number,
            from_peers: push.from_peers,
            ..Default::default()
        };
        Ok(Offer { objects, folder, request })
    }

    /// Tells the model of a push that serves, and takes back what one that was refused uploaded.
    async fn conclude(
        &mut self,
        site: &Site,
        store: &str,
        offer: &Offer,
        served: Result<u64, QueryError>,
    ) -> Outcome {
        let error = match served {
            Ok(version) => {
                let label =
                    self.world().model.label(&site.of(store), 0, &offer.folder).expect("it was noted");
                self.world().model.serves(&site.of(store), version, label);
                return Ok("served");
            }
            Err(error) => error,
        };
        // One in four is as careless as a client may be.
        if is_verdict(&error) && !self.is_one_of(4) {
            self.take_back(site, store, offer).await;
        }
        Err(code(&error))
    }

    async fn take_back(&mut self, site: &Site, store: &str, offer: &Offer) {
        let Ok(record) = site.describe(self.router(), store).await else { return };
        let mut named = record.versions.iter().flat_map(|version| &version.components);
        if named.any(|component| component.folder() == offer.folder) {
            return;
        }
        let objects = offer.objects.clone();
        // What stays is swept.
        let _ = tokio::task::spawn_blocking(move || objects.remove_all()).await.expect("it does not panic");
    }

    /// Hands one push over several times.
    pub async fn repeat(&mut self, site: &Site, store: &str, at_once: bool) -> Outcome {
        let model = &self.world().model;
        let label = model.build(&site.of(store), false);
        let push = Push { label, version: None, from_peers: false, fate: Fate::Ends };
        let id = self.push_id();
        let mut offer = self.offer(site, store, &id, push).await?;
        // Whichever comes first: its number is the time.
        offer.request.version = 0;
        let first = self.router();
        let routers = [&site.routers[first], &site.routers[(first + 1) % ROUTERS]];
        let (one, other) = if at_once {
            tokio::join!(hand_over(routers[0], &offer.request), hand_over(routers[1], &offer.request))
        } else {
            let one = hand_over(routers[0], &offer.request).await;
            (one, hand_over(routers[1], &offer.request).await)
        };
        if let (Ok(one), Ok(other)) = (&one, &other)
            && one != other
        {
            model.wrong(format!("{id} of {} became version {one} and version {other}", site.of(store)));
        }
        for version in [&one, &other].into_iter().flatten() {
            model.serves(&site.of(store), *version, label);
        }
        match (one, other) {
            (Ok(_), Ok(_)) => Ok("served, reported twice"),
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => Ok("served, reported once"),
            (Err(error), Err(_)) => {
                self.take_back(site, store, &offer).await;
                Err(code(&error))
            }
        }
    }

    /// Uploads, and no more.
    pub async fn abandon(&mut self, site: &Site, store: &str, whole: bool) -> Outcome {
        let world = self.world();
        let label = world.model.build(&site.of(store), false);
        let push = Push { label, version: None, from_peers: false, fate: Fate::Ends };
        let id = self.push_id();
        let offer = self.offer(site, store, &id, push).await?;
        if !whole {
            let manifest = format!("{}/{store}/values/{}/manifest.json", site.name, offer.folder);
            fs::remove_file(world.server.file(&manifest)).expect("it was uploaded");
        }
        Ok("done")
    }

    /// Pushes what the other cluster has, by its URL and by its folder's name.
    pub async fn push_foreign(&mut self, site: &Site, other: &Site, store: &str) -> Outcome {
        let record = other.describe(self.router(), store).await.map_err(|error| code(&error))?;
        let current = record.current().and_then(|current| current.components.first());
        let theirs = current.ok_or_else(|| "no version yet".to_owned())?.clone();
        let url = other.objects(store, &theirs.folder()).location().to_string();
        let by_url = ComponentDocument { url: Some(url), folder: None, ..theirs.clone() };
        for component in [by_url, theirs] {
            let request = v1::PushRequest {
                store: store.to_owned(),
                push: self.push_id(),
                who: "programs".to_owned(),
                components: serde_json::to_vec(&[component]).expect("documents are JSON").into(),
                ..Default::default()
            };
            if let Ok(version) = hand_over(&site.routers[self.router()], &request).await {
                let name = other.of(store);
                self.world().model.wrong(format!("{} serves a version of {name}: {version}", site.name));
            }
        }
        Ok("refused")
    }
}

/// Has a router push, to the end; the version.
async fn hand_over(router: &RouterClient, request: &v1::PushRequest) -> Result<u64, QueryError> {
    let mut steps = router.push_store(request.clone()).await?;
    loop {
        match steps.message().await {
            Ok(Some(step)) if step.committed_version != 0 => return Ok(step.committed_version),
            Ok(Some(_)) => {}
            Ok(None) => {
                let (addr, reason) = (router.addr().to_owned(), "the stream ended".to_owned());
                return Err(QueryError::Unreachable { addr, reason });
            }
            Err(status) => return Err(QueryError::from_status(&status)),
        }
    }
}

/// Whether a push cannot come to serve any more: the router itself says so, not a connection that broke.
fn is_verdict(error: &QueryError) -> bool {
    matches!(error, QueryError::Remote { code, help, .. } if *code != ErrorCode::MetadataUnavailable && !help.is_empty())
}

fn build(scratch: &Path, store: &str, number: u64, rows: &Content) -> Manifest {
    let partitions = PartitionCount::new(PARTITIONS).expect("a valid count");
    let (version, out) = (StoreVersion(number), scratch.join("values"));
    let options = ValuesOptions::new(store, version, partitions, out);
    let options = ValuesOptions { key: KeyType::Id, value: ValueType::Text, ..options };
    let mut builder = ValuesBuilder::new(options).expect("a build");
    for (key, value) in rows {
        builder.row(&key.to_le_bytes(), value.as_bytes()).expect("a row of the store");
    }
    builder.finish(&mut |_| {}).expect("built").0
}

fn component(
    version: u64,
    manifest_hash: String,
    (records, bytes): (u64, u64),
    folder: String,
) -> ComponentDocument {
    ComponentDocument {
        name: "values".to_owned(),
        role: "values".to_owned(),
        version,
        manifest_hash,
        columns: Vec::new(),
        members: records,
        edges: 0,
        bytes,
        loaded_at: 0,
        schema: None,
        folder: Some(folder),
        url: None,
    }
}
