//! `kith store push`: makes rows or a built version the served version of a store.
//!
//! The version is built or copied into the cluster's object store under a lock, then handed to a router. The router has
//! every node prepare it before one write makes it current. Until then, and after any failure, the old version serves.

mod cancel;
mod flags;
mod offer;
mod reply;

pub use cancel::CancelReply;
pub use flags::PushFlags;
use kith_types::clock::millis_since_1970;
use offer::{Offer, offer};
pub use reply::PushReply;

use super::build::{dropped, seconds};
use crate::{
    connect::{self, TargetFlags},
    failure::Failure,
    output::{self, Format},
    publish::{PublishFailure, PublishResult, check_thawed, hand_over, lock},
    store::{described, shape_of},
    table,
    who::who,
};
use anyhow::Context;
use kith_build::{LockedStore, VALUES_COMPONENT, Work, find_version};
use kith_client::RouterClient;
use kith_engine::Manifest;
use kith_schema::Schema;
use kith_types::ErrorCode;
use kith_wire::{
    documents::{ComponentDocument, StoreDocument},
    v1,
};
use std::time::Instant;

/// One run of this command.
struct Attempt {
    /// The unique name of the push.
    push: String,
    started: Instant,
}

/// Builds or takes a version, and has it served.
///
/// # Errors
/// If the rows or the version are refused, or the cluster cannot take the version. The store keeps serving its old version
/// then.
pub async fn run(target: &TargetFlags, format: Format, flags: &PushFlags) -> anyhow::Result<()> {
    let started = Instant::now();
    if let Some(push) = &flags.cancel {
        return cancel::run(target, format, &flags.store, push.as_deref()).await;
    }
    if flags.delete.delete.is_some() && !flags.delta {
        let help = "add --delta, or leave the keys out of the rows";
        let message = "--delete needs --delta: it deletes keys of the current version";
        return Err(Failure::usage(message, help).into());
    }
    let router = connect::router(target).await?;
    let topology = router.topology().await.context("read the topology")?;
    // Check the record before anything is built, and read it again under the lock.
    let document = described(&router, &flags.store).await?;
    let shape = shape_of(&router, &document, &topology, is_free_of_served(flags)?).await?;
    check_owner(&document, target)?;
    check_thawed(&document)?;
    let attempt = Attempt { push: format!("push-{:016x}", rand::random::<u64>()), started };
    let locked = lock(&topology.cluster, &flags.store, Work::Push(&attempt.push))?;
    let document = described(&router, &flags.store).await?;
    locked.clear_unfinished(Some(&document))?;
    let offer = offer(&locked, &document, &shape, flags)?;
    let schema = schema_hash(&offer.manifest)?;
    let served = match serve(&router, &attempt.push, &offer, schema, flags).await {
        Ok(served) => served,
        Err(unpublished) => {
            if unpublished.is_certain {
                clear(&router, &flags.store, &locked).await;
            }
            let what = || format!("{} of store {:?}", attempt.push, flags.store);
            return Err(unpublished.named(&flags.store, what));
        }
    };
    locked.mark_finished();
    let reply = replied(&router, attempt, &document, offer, served).await;
    output::print(format, &reply, table::push::pushed)
}

/// Whether a version may be pushed even if the schema that is served cannot be read: it is forced, and its own schema is known
/// without that one. Rows alone are read by the served schema.
fn is_free_of_served(flags: &PushFlags) -> Result<bool, Failure> {
    if !flags.force || flags.rows.schema.is_some() {
        return Ok(flags.force);
    }
    let built = tokio::task::block_in_place(|| find_version(&flags.inputs))?;
    Ok(built.is_some() && !flags.delta)
}

/// Removes what a failed push wrote. The marker stays, so that the next push removes what cannot be removed now.
async fn clear(router: &RouterClient, store: &str, locked: &LockedStore) {
    if let Ok(document) = described(router, store).await {
        let _ = locked.clear_unfinished(Some(&document));
    }
}

/// Returns the reply for a push whose version serves. `before` is the store's record before the push.
async fn replied(
    router: &RouterClient,
    attempt: Attempt,
    before: &StoreDocument,
    offer: Offer,
    served: PublishResult,
) -> PushReply {
    let PublishResult { version, flip_us, routers } = served;
    let store = before.name.clone();
    let before = before.current().map(|current| current.version);
    PushReply {
        excluded: excluded_groups(router, &store, version).await,
        version,
        records: offer.records,
        bytes: bytes_of(&offer.manifest),
        swapped: true,
        push: attempt.push,
        before,
        undo: before.map(|_| format!("kith store rollback {store}")),
        duplicates: offer.duplicates,
        dropped: dropped(&offer.errors),
        schema_changes: offer.schema_changes,
        warning: offer.warning,
        changes: offer.changes,
        flip_us,
        routers,
        seconds: seconds(attempt.started.elapsed()),
        store,
    }
}

/// Returns the nodes that a push left out of a version; `None` if the router no longer answers, which does not affect the
/// version.
async fn excluded_groups(router: &RouterClient, store: &str, version: u64) -> Option<Vec<u32>> {
    let document = described(router, store).await.ok()?;
    document.versions.into_iter().find(|entry| entry.version == version).map(|entry| entry.excluded)
}

/// Refuses a user who does not own the store before anything is built. The router checks this again. A caller who shows a
/// certificate or token is checked only by the router.
fn check_owner(document: &StoreDocument, target: &TargetFlags) -> Result<(), Failure> {
    match &document.definition.owner {
        Some(owner) if *owner != who() && !target.security.shows_who() => {
            let message = format!("only {owner} may push to store {:?}, not {}", document.name, who());
            Err(Failure::new(ErrorCode::StoreOwner, message, format!("ask {owner}")))
        }
        _ => Ok(()),
    }
}

async fn serve(
    router: &RouterClient,
    push: &str,
    offer: &Offer,
    schema: Option<String>,
    flags: &PushFlags,
) -> Result<PublishResult, PublishFailure> {
    let components =
        serde_json::to_vec(&[component(offer, schema)]).expect("documents hold only strings and numbers");
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
        fill_missing: offer.may_lack,
    };
    let note =
        format!("the cluster carries out {push}: Ctrl-C cancels it; if this command is killed, it continues");
    hand_over(router, request, Some(&note)).await
}

/// Returns the only component of the version, as records name it.
fn component(offer: &Offer, schema: Option<String>) -> ComponentDocument {
    let manifest = &offer.manifest;
    ComponentDocument {
        name: VALUES_COMPONENT.to_owned(),
        role: VALUES_COMPONENT.to_owned(),
        version: manifest.version.0,
        manifest_hash: manifest.hash(),
        columns: Vec::new(),
        members: offer.records,
        edges: 0,
        bytes: bytes_of(manifest),
        loaded_at: millis_since_1970() / 1_000,
        schema,
        folder: offer.folder.clone(),
        url: offer.url.clone(),
    }
}

/// Returns the hash by which readers name the schema of the records.
fn schema_hash(manifest: &Manifest) -> Result<Option<String>, Failure> {
    let schema = manifest.values().and_then(|values| values.schema.as_deref());
    let schema = schema.map(str::parse::<Schema>).transpose().map_err(|error| {
        let message = format!("the schema in the version's manifest is invalid: {error}");
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
