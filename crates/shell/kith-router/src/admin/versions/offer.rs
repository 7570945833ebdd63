//! Checks what a push offers: the places of its components, and that they belong to the store that it names. The
//! caller's word is not enough. Both are checked before any node is asked to fetch, and only allowed places are
//! contacted.

use super::push::Push;
use crate::admin::{
    ClusterHandle,
    read_from::{ReadFrom, UrlRefused, check_url},
};
use kith_engine::{FetchError, MANIFEST_NAME, Manifest, ObjectError, OpenError};
use kith_files::objects::{Location, Objects, PlaceError};
use kith_net::server::security::audit::{self, ForcedCall, RefusedCall};
use kith_query::Service;
use kith_schema::{Schema, may_follow};
use kith_session::Session;
use kith_types::{ErrorCode, with_causes};
use kith_wire::documents::{ComponentDocument, StoreDocument};
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;
use tonic::Status;

/// The name of a push in the audit log.
const PUSH: &str = "push";
/// The component that holds the records of a store.
const VALUES: &str = "values";
/// The help text for an incomplete version.
const BUILD_AGAIN: &str = "nothing was swapped; build it again under a new number, then push that";

/// The components that a push offers, and what they are compared with.
pub(super) struct Offer<'a> {
    pub push: &'a Push,
    pub cluster: &'a ClusterHandle,
    /// Asks the nodes, which know the served schema even if the object store has lost the version.
    pub session: &'a Session,
    /// The places from which versions that were built elsewhere may be read.
    pub read_from: &'a [ReadFrom],
    /// The longest time from the beginning of an upload to its push.
    pub hand_over: Duration,
}

impl Offer<'_> {
    /// Checks that the places in a push are allowed for its store. Contacts no place.
    ///
    /// # Errors
    /// `url_not_allowed`, with a line in the audit log.
    pub fn check_places(&self) -> Result<(), Status> {
        let push = self.push;
        let location = self.cluster.topology.borrow().cluster.object_store.clone();
        let own: Location = location.parse().map_err(|error| unusable(&PlaceError::Location(error)))?;
        for url in push.components.iter().filter_map(|component| component.url.as_deref()) {
            check_url(url, &push.store, &own, self.read_from).map_err(|error| {
                refused(push, ErrorCode::UrlNotAllowed, &error.to_string());
                url_not_allowed(&error)
            })?;
        }
        Ok(())
    }

    /// Checks that the folders in the object store that a push names are its own, or those of versions that the store has.
    ///
    /// # Errors
    /// `bad_request`, with a line in the audit log; `version_taken`.
    pub fn check_folders(&self, store: &StoreDocument) -> Result<(), Status> {
        let push = self.push;
        let is_bucket = Location::is_url(&self.cluster.topology.borrow().cluster.object_store);
        for component in push.components.iter().filter(|component| component.url.is_none()) {
            let known = store.versions.iter().flat_map(|version| &version.components);
            let mut known = known.filter(|known| known.name == component.name);
            let same = known.clone().find(|known| known.version == component.version);
            if same.is_some_and(|same| same.manifest_hash != component.manifest_hash) {
                let message = format!("store {:?} has another version {}", store.name, component.version);
                let help = "build it again under another number";
                return Err(kith_wire::status(ErrorCode::VersionTaken, message, help));
            }
            let own = format!("{}-{}", component.version, push.push.0);
            let is_own = component.folder.as_ref().map_or(!is_bucket, |folder| *folder == own);
            if !is_own && !known.any(|known| known.url.is_none() && known.folder() == component.folder()) {
                let reason = format!(
                    "component {:?} is said to lie in folder {:?} of the object store, where neither this push ({:?}) nor a version of \
                     the store is",
                    component.name,
                    component.folder(),
                    push.push.0
                );
                refused(push, ErrorCode::BadRequest, &reason);
                let help = "nothing was pushed; upload the version into the folder VERSION-PUSH of its component, and push it under \
                            that version and that push's id";
                return Err(kith_wire::status(ErrorCode::BadRequest, reason, help));
            }
        }
        Ok(())
    }

    /// Checks that the components of a push are as described, belong to its store, and have the fields of the served version.
    /// A push by force need not have them, which is a line in the audit log. This is done after the push has begun, so that no
    /// clean-up can remove afterwards what was checked.
    ///
    /// # Errors
    /// With a line in the audit log: `other_store`, `bad_request` if a component is described with another schema than it was
    /// built with, `bad_schema` if a schema cannot be read, `incompatible_schema`. Without: `version_damaged`,
    /// `object_store_unreachable`.
    pub async fn check_manifests(&self, store: &StoreDocument) -> Result<(), Status> {
        let push = self.push;
        if push.force {
            audit::forced(&ForcedCall {
                subject: &push.who,
                method: PUSH,
                store: &push.store,
                peer: push.peer,
            });
        }
        let served = (!push.force).then(|| Served::of(store, push.fill_missing, self.session));
        let location = self.cluster.topology.borrow().cluster.object_store.clone();
        let (store, components) = (push.store.clone(), push.components.clone());
        let own = format!("-{}", push.push.0);
        let hand_over = self.hand_over;
        let checked = tokio::task::spawn_blocking(move || {
            let objects = Objects::named(&location).map_err(|error| unusable(&error))?;
            components.iter().try_for_each(|component| {
                let is_new = component.url.is_none()
                    && component.folder.as_ref().is_some_and(|folder| folder.ends_with(&own));
                let manifest = check_manifest(&objects, &store, component, is_new.then_some(hand_over))?;
                served.as_ref().map_or(Ok(()), |served| served.check(&objects, &manifest))
            })
        });
        let checked = checked.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())));
        checked.inspect_err(|status| {
            let code = kith_wire::code_of(status);
            if is_audited(code) {
                refused(push, code, status.message());
            }
        })
    }
}

/// Whether a version that is refused with this code may be meant to harm a store. Others are damaged or out of reach.
fn is_audited(code: ErrorCode) -> bool {
    use ErrorCode::{BadRequest, BadSchema, IncompatibleSchema, OtherStore};
    matches!(code, OtherStore | BadRequest | BadSchema | IncompatibleSchema)
}

/// Writes one line to the audit log.
fn refused(push: &Push, code: ErrorCode, reason: &str) {
    audit::refused(&RefusedCall {
        subject: &push.who,
        method: PUSH,
        store: &push.store,
        code,
        reason,
        peer: push.peer,
    });
}

fn check_manifest(
    objects: &Objects,
    store: &str,
    component: &ComponentDocument,
    hand_over: Option<Duration>,
) -> Result<Manifest, Status> {
    let folder = objects
        .component(store, &component.name, &component.folder(), component.url.as_deref())
        .map_err(|error| unusable(&error))?;
    let manifest = folder.manifest().map_err(|error| unreadable(&folder, &error))?;
    if manifest.hash() != component.manifest_hash {
        let message =
            format!("{} is not the version that is pushed: its manifest differs", folder.location());
        return Err(damaged(message, BUILD_AGAIN));
    }
    if !manifest.is_of(store, &component.name) {
        return Err(other_store(&manifest, store, component));
    }
    check_schema(component, &manifest)?;
    check_packs(&folder, &manifest, hand_over)?;
    Ok(manifest)
}

/// Checks that a component names the schema of its records. Readers would otherwise decode them by another one.
fn check_schema(component: &ComponentDocument, manifest: &Manifest) -> Result<(), Status> {
    let schema = schema_of(manifest).map(|text| parsed(text, "the pushed version")).transpose()?;
    let schema = schema.map(|schema| schema.id().to_string());
    if component.schema == schema {
        return Ok(());
    }
    let name = |schema: &Option<String>| schema.clone().unwrap_or_else(|| "none".to_owned());
    let (described, built) = (name(&component.schema), name(&schema));
    let message = format!(
        "component {:?} of the push is said to have the schema {described}, but was built with {built}",
        component.name
    );
    let help = "nothing was pushed; name the schema of the component's manifest, as `kith store push` does";
    Err(kith_wire::status(ErrorCode::BadRequest, message, help))
}

/// The served version of a store, as far as it decides which records may follow.
struct Served {
    store: String,
    /// The number of the served version; 0 before the first push.
    version: u64,
    /// The component with the records; `None` before the first push.
    values: Option<ComponentDocument>,
    /// The schema with which the store was created.
    stated: Option<String>,
    fill_missing: bool,
    nodes: (Session, Handle),
}

impl Served {
    fn of(store: &StoreDocument, fill_missing: bool, session: &Session) -> Self {
        let components = store.current().map(|current| current.components.as_slice()).unwrap_or_default();
        let values = components.iter().find(|component| component.name == VALUES).cloned();
        let version = store.current().map_or(0, |current| current.version);
        let stated = store.definition.schema.clone();
        let (store, nodes) = (store.name.clone(), (session.clone(), Handle::current()));
        Self { store, version, values, stated, fill_missing, nodes }
    }

    /// Checks that the records of a built version may follow the served ones.
    fn check(&self, objects: &Objects, built: &Manifest) -> Result<(), Status> {
        let Some(built) = schema_of(built) else { return Ok(()) };
        let built = parsed(built, "the pushed version")?;
        let current = match &self.values {
            // The served manifest need not be there if nothing changes.
            Some(values) if values.schema == Some(built.id().to_string()) => return Ok(()),
            Some(values) => self.served_schema(objects, values)?,
            None => self.stated.as_deref().map(|text| parsed(text, "the store")).transpose()?,
        };
        let Some(current) = current else { return Ok(()) };
        may_follow(&current, &built, self.fill_missing).map(drop).map_err(|unfit| {
            kith_wire::status(ErrorCode::IncompatibleSchema, unfit.to_string(), unfit.help())
        })
    }

    /// Returns the schema of the served records: from their manifest, or from the nodes if the object store has lost it.
    fn served_schema(&self, objects: &Objects, values: &ComponentDocument) -> Result<Option<Schema>, Status> {
        let folder = objects
            .component(&self.store, &values.name, &values.folder(), values.url.as_deref())
            .map_err(|error| unusable(&error))?;
        match folder.manifest() {
            Ok(manifest) => {
                schema_of(&manifest).map(|text| parsed(text, "the served version")).transpose()
            }
            Err(error) => self.nodes_schema(values).map(Some).map_err(|of_nodes| {
                let message = format!(
                    "the push has another schema than the served version, whose own cannot be read: {}: {}; {of_nodes}",
                    folder.location(),
                    with_causes(&error)
                );
                let help = "push with the served schema, or with `--force`, which skips this check";
                kith_wire::status(ErrorCode::ObjectStoreUnreachable, message, help)
            }),
        }
    }

    /// Returns the schema that the nodes have for the served records, or why they do not give it.
    fn nodes_schema(&self, values: &ComponentDocument) -> Result<Schema, String> {
        let name = values.schema.as_deref().ok_or("the served version names no schema")?;
        let id =
            name.parse().map_err(|error| format!("the served version names no valid schema: {error}"))?;
        let (session, runtime) = &self.nodes;
        let asked = session.schema(&self.store, self.version, id);
        runtime.block_on(asked).map_err(|error| format!("the nodes do not give it: {error}"))
    }
}

fn schema_of(manifest: &Manifest) -> Option<&str> {
    manifest.values().and_then(|values| values.schema.as_deref())
}

fn parsed(text: &str, whose: &str) -> Result<Schema, Status> {
    text.parse().map_err(|error| {
        let message = format!("the schema of {whose} cannot be read: {}", with_causes(&error));
        kith_wire::status(ErrorCode::BadSchema, message, "see docs/formats/schema.md for the language")
    })
}

/// Checks that all packs exist with their sizes. A clean-up of an upload that took too long may have removed packs and left
/// the manifest.
fn check_packs(folder: &Objects, manifest: &Manifest, hand_over: Option<Duration>) -> Result<(), Status> {
    let listed = folder.list().map_err(|error| unusable(&PlaceError::Objects(error)))?;
    for pack in manifest.packs() {
        let found = listed.iter().find(|listed| listed.name == pack.name).map(|listed| listed.bytes);
        if found != Some(pack.bytes) {
            let found = found.map_or("missing".to_owned(), |bytes| format!("{bytes} bytes"));
            let message =
                format!("{}: {} is {found}, not {} bytes", folder.location(), pack.name, pack.bytes);
            return Err(damaged(message, BUILD_AGAIN));
        }
    }
    let first = listed.iter().map(|listed| listed.modified).min();
    let age = first.and_then(|first| SystemTime::now().duration_since(first).ok());
    match (hand_over, age) {
        (Some(most), Some(age)) if most < age => {
            Err(damaged(format!("{} was uploaded too long ago", folder.location()), BUILD_AGAIN))
        }
        _ => Ok(()),
    }
}

fn other_store(manifest: &Manifest, store: &str, component: &ComponentDocument) -> Status {
    let of = format!("of store {:?}", manifest.store());
    let message = format!(
        "component {:?} of the push is a version {of}, built as {:?}, not one of store {store:?}",
        component.name, manifest.component
    );
    kith_wire::status(ErrorCode::OtherStore, message, "build it again for this store")
}

fn url_not_allowed(refused: &UrlRefused) -> Status {
    let help = "copy the version to this machine and push its folder, or have the routers' `read-from` list the place: \
                docs/operating/object-stores.md";
    kith_wire::status(ErrorCode::UrlNotAllowed, refused.to_string(), help)
}

fn unusable(error: &PlaceError) -> Status {
    let help = "see docs/operating/object-stores.md for the settings of object stores";
    kith_wire::status(ErrorCode::ObjectStoreUnreachable, with_causes(error), help)
}

fn unreadable(folder: &Objects, error: &FetchError) -> Status {
    let message = format!("{}: {}", folder.location(), with_causes(error));
    match error {
        FetchError::Manifest(OpenError::NoComponent { .. }) => damaged(
            format!("{} holds no built version: it has no {MANIFEST_NAME}", folder.location()),
            "nothing was pushed; name the folder of one version, whose upload has ended: its manifest comes last",
        ),
        FetchError::Source(ObjectError::Missing { .. } | ObjectError::NoFile { .. })
        | FetchError::Manifest(_)
        | FetchError::Damaged(_) => damaged(message, BUILD_AGAIN),
        _ => {
            let help = "check that routers can reach it, and the endpoint and keys in their environment: \
                        docs/operating/object-stores.md";
            kith_wire::status(ErrorCode::ObjectStoreUnreachable, message, help)
        }
    }
}

fn damaged(message: String, help: &str) -> Status {
    kith_wire::status(ErrorCode::VersionDamaged, message, help)
}
