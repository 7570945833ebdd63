//! `kith store push`: rows or a built version in, what the store serves out.
//!
//! Built or copied into the cluster's object store under a lock, then handed to a router, which has every node prepare
//! it before one write makes it served. Until then, and whenever something fails, the old version serves.

mod cancel;
mod flags;
mod reply;

pub use cancel::CancelReply;
pub use flags::PushFlags;
pub use reply::PushReply;

use super::build::{ChangesReply, RowFlags, dropped, seconds};
use crate::{
    connect::{self, TargetFlags},
    failure::{Failure, told},
    output::{self, Format},
    publish::{Served, Unpublished, check_thawed, hand_over, lock, metered},
    store::described,
    table,
    who::who,
};
use anyhow::Context;
use kith_build::{
    Base, LockedStore, Objects, Rows, Shape, Target, VALUES_COMPONENT, Work, find_version, manifest_at, now,
    remove_folder, take_version,
};
use kith_client::RouterClient;
use kith_engine::Manifest;
use kith_rows::RowErrors;
use kith_schema::Schema;
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::{
    documents::{ComponentDocument, StoreDocument},
    v1,
};
use std::{path::PathBuf, time::Instant};

/// What lies in the object store and is to be served.
struct Offer {
    manifest: Manifest,
    /// The number that the store is to give it.
    version: u64,
    records: u64,
    duplicates: u64,
    errors: RowErrors,
    schema_changes: Vec<String>,
    changes: Option<ChangesReply>,
    /// Its folder in the cluster's object store; `None`: that of its number.
    folder: Option<String>,
    /// Where nodes find it; `None`: in the cluster's object store.
    url: Option<String>,
}

/// Builds or takes a version, and has it served.
///
/// # Errors
/// If the rows or the version are refused, or the cluster cannot take it: what was served serves on then.
pub async fn run(target: &TargetFlags, format: Format, flags: &PushFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    if let Some(push) = &flags.cancel {
        return cancel::run(target, format, &flags.store, push.as_deref()).await;
    }
    if flags.delete.delete.is_some() && !flags.delta {
        let help = "say --delta, or leave the keys out of the rows";
        return Err(Failure::usage("--delete is about changes of the current version", help).into());
    }
    let router = connect::router(target).await?;
    let topology = router.topology().await.context("read the topology")?;
    // Asked before anything is made for a store that is not there, and again under the lock.
    let document = described(&router, &flags.store).await?;
    let shape = Shape::of(&document, &topology)?;
    check_owner(&document, target)?;
    check_thawed(&document)?;
    let push = format!("push-{:016x}", rand::random::<u64>());
    let locked = lock(&topology.cluster, &flags.store, Work::Push(&push))?;
    let document = described(&router, &flags.store).await?;
    locked.clear_unfinished(Some(&document))?;
    let offer = tokio::task::block_in_place(|| match find_version(&flags.inputs)? {
        Some(place) if !flags.delta => take(&locked, &document, &shape, flags, &place),
        _ => build(&locked, &document, &shape, flags),
    });
    let offer = match offer {
        Ok(offer) => offer,
        Err(error) => {
            // What it began to write.
            locked.clear_unfinished(Some(&document))?;
            return Err(error.into());
        }
    };
    let schema = schema_hash(&offer.manifest)?;
    let Served { version, flip_us, routers } = match serve(&router, &push, &offer, schema, flags).await {
        Ok(served) => served,
        Err(unpublished) => {
            if unpublished.is_certain
                && let Ok(document) = described(&router, &flags.store).await
            {
                // What cannot be removed now, the next push removes: the marker stays.
                let _ = locked.clear_unfinished(Some(&document));
            }
            return Err(unpublished.named(&flags.store, || format!("{push} of store {:?}", flags.store)));
        }
    };
    locked.mark_finished();
    let before = document.current().map(|current| current.version);
    let excluded = excluded_groups(&router, &flags.store, version).await;
    let reply = PushReply {
        store: flags.store.clone(),
        version,
        records: offer.records,
        bytes: bytes_of(&offer.manifest),
        swapped: true,
        push,
        before,
        excluded,
        undo: before.map(|_| format!("kith store rollback {}", flags.store)),
        duplicates: offer.duplicates,
        dropped: dropped(&offer.errors),
        schema_changes: offer.schema_changes,
        changes: offer.changes,
        flip_us,
        routers,
        seconds: seconds(started.elapsed()),
    };
    output::print(format, &reply, table::push::pushed)
}

/// The replica groups that were left out of a version; `None` if the router no longer answers, which changes nothing about
/// the version.
async fn excluded_groups(router: &RouterClient, store: &str, version: u64) -> Option<Vec<u32>> {
    let document = described(router, store).await.ok()?;
    document.versions.into_iter().find(|entry| entry.version == version).map(|entry| entry.excluded)
}

/// The router looks too; here nothing has been built yet. Whoever shows a certificate or token is known to the router by that alone.
fn check_owner(document: &StoreDocument, target: &TargetFlags) -> Result<(), Failure> {
    match &document.definition.owner {
        Some(owner) if *owner != who() && !target.security.shows_who() => {
            let message = format!("only {owner} pushes to store {:?}, not {}", document.name, who());
            Err(Failure::new(ErrorCode::StoreOwner, message, format!("ask {owner}")))
        }
        _ => Ok(()),
    }
}

/// Builds rows into the object store.
fn build(
    locked: &LockedStore,
    document: &StoreDocument,
    shape: &Shape,
    flags: &PushFlags,
) -> Result<Offer, Failure> {
    let rows = Rows::open(&flags.inputs, &flags.rows.settings(), shape, flags.force)?;
    let version = match flags.version {
        Some(version) => newer(version, document)?,
        None => locked.next_version(Some(document))?,
    };
    locked.mark_unfinished(version)?;
    let out_dir = locked.component(VALUES_COMPONENT);
    let target = Target { store: &flags.store, version: StoreVersion(version), out_dir };
    let current = flags.delta.then(|| current_folder(locked, document)).transpose()?;
    let base = current.as_ref().and_then(|(_, place)| place.as_ref());
    let built = metered(|progress| match &current {
        Some((folder, _)) => {
            let base = Base { folder, place: base, delete: flags.delete.delete.as_deref() };
            rows.build_on(base, &target, progress)
        }
        None => rows.build(&target, progress),
    });
    let built = built.map_err(told)?;
    let folder = target.out_dir.join(version.to_string());
    metered(|progress| locked.upload(base, VALUES_COMPONENT, version, &folder, progress))?;
    Ok(Offer {
        folder: locked.folder_of(version),
        url: None,
        version,
        records: built.records(),
        duplicates: built.duplicates,
        changes: built.changes.map(ChangesReply::from),
        manifest: built.manifest,
        errors: built.report.errors,
        schema_changes: rows.notes,
    })
}

/// The version that is served, as it was built, and where in a bucket it lies.
fn current_folder(
    locked: &LockedStore,
    document: &StoreDocument,
) -> Result<(PathBuf, Option<Objects>), Failure> {
    let components = document.current().map(|current| current.components.as_slice()).unwrap_or_default();
    let values = components.iter().find(|component| component.name == VALUES_COMPONENT);
    let Some(values) = values else {
        let message = format!("store {:?} serves no version yet: there is nothing to change", document.name);
        return Err(Failure::new(ErrorCode::NoVersion, message, "push all rows first, without --delta"));
    };
    Ok(metered(|progress| locked.built(values, progress))?)
}

/// Takes a version that was built elsewhere.
fn take(
    locked: &LockedStore,
    document: &StoreDocument,
    shape: &Shape,
    flags: &PushFlags,
    place: &Objects,
) -> Result<Offer, Failure> {
    if flags.rows != RowFlags::default() {
        let message =
            format!("{} is a built version: flags about rows change nothing of it", place.location());
        return Err(Failure::usage(message, "leave them out, or name the rows"));
    }
    let manifest = manifest_at(place)?;
    let schema_changes = shape.check(&flags.store, &manifest, flags.force)?;
    let number = manifest.version.0;
    let version = match flags.version {
        Some(version) => newer(version, document)?,
        None if document.version_last < number => number,
        None => locked.next_version(Some(document))?,
    };
    let hash = manifest.hash();
    let mut components = document.versions.iter().flat_map(|version| &version.components);
    let (folder, url) = match (components.find(|component| component.version == number), place.folder()) {
        (Some(named), _) if named.manifest_hash != hash => {
            // Served, or a rollback away.
            let message = format!("the store has another version that was built under the number {number}");
            return Err(Failure::new(
                ErrorCode::VersionTaken,
                message,
                "build it again under another --version",
            ));
        }
        (Some(named), _) => (named.folder.clone(), named.url.clone()),
        (None, None) => (None, Some(place.location().to_string())),
        (None, Some(folder)) => {
            locked.mark_unfinished(number)?;
            remove_folder(&locked.component(VALUES_COMPONENT).join(number.to_string()))?;
            metered(|progress| take_version(folder, &manifest, VALUES_COMPONENT, locked, progress))?;
            (locked.folder_of(number), None)
        }
    };
    let records = manifest.values().map_or(0, |values| values.counts.records);
    let (duplicates, errors) = (0, RowErrors::default());
    Ok(Offer { manifest, version, records, duplicates, errors, schema_changes, changes: None, folder, url })
}

/// Told before hours of building, not after.
fn newer(version: u64, document: &StoreDocument) -> Result<u64, Failure> {
    let last = document.version_last;
    if last < version {
        return Ok(version);
    }
    let message = format!("version {version} is not above {last}, the last one used");
    Err(Failure::new(ErrorCode::VersionNotNewer, message, "give a greater number, or none"))
}

async fn serve(
    router: &RouterClient,
    push: &str,
    offer: &Offer,
    schema: Option<String>,
    flags: &PushFlags,
) -> Result<Served, Unpublished> {
    let manifest = &offer.manifest;
    let component = ComponentDocument {
        name: VALUES_COMPONENT.to_owned(),
        role: VALUES_COMPONENT.to_owned(),
        version: manifest.version.0,
        manifest_hash: manifest.hash(),
        columns: Vec::new(),
        members: offer.records,
        edges: 0,
        bytes: bytes_of(manifest),
        loaded_at: now() / 1_000,
        schema,
        folder: offer.folder.clone(),
        url: offer.url.clone(),
    };
    let components = serde_json::to_vec(&[component]).expect("documents hold only strings and numbers");
    let request = v1::PushRequest {
        store: flags.store.clone(),
        push: push.to_owned(),
        who: who(),
        components: components.into(),
        version: offer.version,
        missing_max: flags.allow_missing,
        from_peers: flags.from_peers,
        node_wait_ms: flags.node_wait_ms,
        force: flags.force,
        graph: false,
    };
    let note = format!("{push} is handed over: Ctrl-C cancels it, and it goes on if this command is killed");
    hand_over(router, request, Some(&note)).await
}

/// What readers name the schema of records by.
fn schema_hash(manifest: &Manifest) -> Result<Option<String>, Failure> {
    let schema = manifest.values().and_then(|values| values.schema.as_deref());
    let schema = schema.map(str::parse::<Schema>).transpose().map_err(|error| {
        let message = format!("the schema in the version's manifest makes no sense: {error}");
        Failure::new(
            ErrorCode::VersionDamaged,
            message,
            "nothing was pushed; build it again with `kith store build`",
        )
    })?;
    Ok(schema.map(|schema| schema.id().to_string()))
}

fn bytes_of(manifest: &Manifest) -> u64 {
    manifest.files.iter().map(|file| file.bytes).sum()
}
