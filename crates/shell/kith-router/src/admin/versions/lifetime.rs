//! Creates and drops stores: the first and the last write of a store's record.

use super::{
    caretaker::Caretaker,
    clean::Cleaner,
    definition::{check_definition, check_name, decoded},
    properties::{PropertyStores, unknown_graph},
};
use crate::admin::ClusterHandle;
use kith_cluster::metadata::{
    CommitOutcome, Condition, Write, keys,
    records::{
        ChangeCaller, ChangeError, StoreEntry, conflict, now, policy_of, read,
        shares::{Amount, ShareKind, Shares, charged_to},
    },
};
use kith_topology::versions::{Refusal, version_last_of_dropped};
use kith_types::{ErrorCode, StoreVersion};
use kith_wire::documents::{
    DOCUMENT_FORMAT, DefinitionDocument, Document, DroppedDocument, HoldsDocument, StoreDocument,
};
use std::time::Duration;

/// The maximum number of attempts to create a store while others create stores at the same time.
const CREATE_TRIES: u32 = 32;
/// The longest pause before the next try. Pauses are random, so that competing routers do not meet again.
const CREATE_PAUSE_MAX: Duration = Duration::from_millis(50);

/// Creates and drops stores.
#[derive(Clone)]
pub(super) struct StoreRegistry {
    pub cluster: ClusterHandle,
    pub caretaker: Caretaker,
    pub cleaner: Cleaner,
}

impl StoreRegistry {
    /// Creates a store. Returns its record.
    pub async fn create(
        &self,
        store: &str,
        definition: &[u8],
        caller: ChangeCaller<'_>,
    ) -> Result<StoreDocument, ChangeError> {
        check_name(store)?;
        let definition = decoded(definition)?;
        check_definition(&definition, self.cluster.topology.borrow().cluster.groups.len())?;
        let document = self.new_store(store, definition, caller).await?;
        let (key, record) = (keys::store(store), document.encode());
        for _ in 0..CREATE_TRIES {
            let shares = Shares::read(&*self.cluster.metadata, ShareKind::Stores).await?;
            let amount = Amount { count: 1, bytes: record.len() as u64 };
            shares.check(&document.charged_to, Amount::default(), amount)?;
            let only_if_new =
                [&key, &keys::live_graph(store)].map(|key| Condition { key: key.clone(), revision: 0 });
            let conditions = only_if_new.into_iter().chain([shares.condition()]).collect();
            let writes = vec![Write::put(key.clone(), record.clone()), shares.write()];
            if let CommitOutcome::At(revision) = self.cluster.metadata.commit(conditions, writes).await? {
                self.cluster.wait_until_visible(revision).await;
                return Ok(document);
            }
            self.check_not_live(store).await?;
            if read(&*self.cluster.metadata, store).await?.is_some() {
                let message = format!("there is a store {store:?} already");
                let help = "choose another name, or drop it first";
                return Err(kith_wire::status(ErrorCode::StoreExists, message, help).into());
            }
            // Another store was created at the same time.
            tokio::time::sleep(CREATE_PAUSE_MAX.mul_f64(rand::random())).await;
        }
        Err(conflict(store).into())
    }

    /// Returns the record of a new store. Its version numbers begin above those that a dropped store of the same name used.
    pub async fn new_store(
        &self,
        name: &str,
        definition: DefinitionDocument,
        ChangeCaller { who, standing, .. }: ChangeCaller<'_>,
    ) -> Result<StoreDocument, ChangeError> {
        self.check_not_live(name).await?;
        let key = keys::dropped(name);
        let snapshot = self.cluster.metadata.read(&key).await?;
        let dropped = snapshot.get(&key).map(|entry| DroppedDocument::decode(&entry.value)).transpose()?;
        Ok(StoreDocument {
            format: DOCUMENT_FORMAT,
            name: name.to_owned(),
            charged_to: charged_to(who, standing),
            definition,
            version_last: dropped
                .map_or(0, |dropped| version_last_of_dropped(StoreVersion(dropped.version_last), now()).0),
            versions: Vec::new(),
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: Vec::new(),
        })
    }

    /// Refuses the name of a live graph, because stores and live graphs share one name space.
    async fn check_not_live(&self, name: &str) -> Result<(), ChangeError> {
        let key = keys::live_graph(name);
        match self.cluster.metadata.read(&key).await?.get(&key) {
            None => Ok(()),
            Some(_) => {
                let message =
                    format!("{name:?} is a live graph: it takes writes, and cannot be loaded or pushed");
                let help = "choose another name";
                Err(kith_wire::status(ErrorCode::LiveGraph, message, help).into())
            }
        }
    }

    /// Drops a store; with `is_graph`, only if it is a graph.
    ///
    /// # Errors
    /// If there is no such store or graph, it is frozen, it belongs to another user, or a push of it is running.
    pub async fn drop_store(
        &self,
        store: &str,
        is_graph: bool,
        caller: ChangeCaller<'_>,
    ) -> Result<(), ChangeError> {
        let known = match read(&*self.cluster.metadata, store).await? {
            Some(known) if !is_graph || known.document.definition.holds == HoldsDocument::Graph => known,
            _ if is_graph => return Err(unknown_graph(&self.cluster, store).into()),
            _ => return Err(ChangeError::Unknown),
        };
        let is_keeper = |known: &StoreEntry| {
            policy_of(&known.document.definition).guards.check_keeper(caller.who, caller.standing)
        };
        is_keeper(&known)?;
        if !is_graph {
            PropertyStores { cluster: &self.cluster }.check_unused(store).await?;
        }
        if let Some(frozen) = &known.document.frozen {
            return Err(Refusal::StoreFrozen { who: frozen.who.clone() }.into());
        }
        if let Some(running) = &known.document.running
            && !self.caretaker.take_back_if_dead(&known.document).await?
        {
            let version = StoreVersion(running.version);
            let (push, who) = (running.push.as_str().into(), running.who.clone());
            return Err(Refusal::PushRunning { push, version, who }.into());
        }
        let known = read(&*self.cluster.metadata, store).await?.ok_or(ChangeError::Unknown)?;
        is_keeper(&known)?;
        let key = keys::store(store);
        let dropped = DroppedDocument { format: DOCUMENT_FORMAT, version_last: known.document.version_last };
        let condition = Condition { key: key.clone(), revision: known.revision };
        let writes = vec![Write::delete(key), Write::put(keys::dropped(store), dropped.encode())];
        match self.cluster.metadata.commit(vec![condition], writes).await? {
            CommitOutcome::At(revision) => {
                self.cluster.wait_until_visible(revision).await;
                self.cleaner.clean_store(known.document).await;
                Ok(())
            }
            CommitOutcome::Conflict => Err(conflict(store).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        UploadSettings,
        admin::cluster::{Shape, create_cluster},
        admin::{Coordinator, versions::active::ActivePushes},
    };
    use kith_cluster::metadata::{EmbeddedMetadata, MetadataStore};
    use kith_cluster::topology;
    use kith_net::security::Dialer;
    use kith_topology::versions::Trust;
    use std::sync::Arc;
    use tokio_util::sync::CancellationToken;

    /// The record of a store of `tenant` whose description has so many bytes.
    fn record(name: &str, bytes: usize) -> Write {
        let document = StoreDocument {
            format: DOCUMENT_FORMAT,
            name: name.to_owned(),
            charged_to: "tenant".to_owned(),
            definition: DefinitionDocument { owner: Some("x".repeat(bytes)), ..definition() },
            version_last: 0,
            versions: Vec::new(),
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: Vec::new(),
        };
        Write::put(keys::store(name), document.encode())
    }

    fn definition() -> DefinitionDocument {
        DefinitionDocument::new(HoldsDocument::Graph)
    }

    #[tokio::test]
    async fn a_subject_creates_no_more_stores_than_it_may_have() {
        let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
        let metadata = Arc::new(EmbeddedMetadata::in_memory());
        let shape = Shape { groups: Some(1), nodes: Some(1), partitions: Some(2), ..Shape::default() };
        create_cluster(&*metadata, &shape, folder.path().to_str().unwrap()).await.unwrap();
        let shared: Arc<dyn MetadataStore> = metadata.clone();
        let followed = topology::follow(Arc::clone(&shared), None, stop.clone()).await.unwrap();
        let handle = ClusterHandle {
            metadata: shared,
            topology: followed.topology,
            coordinator: Coordinator::new(0),
            dialer: Dialer::default(),
        };
        let cluster = handle.cluster();
        let caretaker = Caretaker { cluster: handle.clone(), active: ActivePushes::default() };
        let cleaner = Cleaner { cluster: handle.clone(), uploads: UploadSettings::default() };
        let registry = StoreRegistry { cluster: handle, caretaker, cleaner };
        let definition = serde_json::to_vec(&definition()).unwrap();
        let create = async |name: &str, who: &str, standing: Trust| {
            let created =
                registry.create(name, &definition, ChangeCaller { who, standing, cluster: &cluster }).await;
            let error = created.err()?.to_status(name);
            assert_eq!(kith_wire::code_of(&error), ErrorCode::OutOfRange, "{error}");
            Some(error.message().to_owned())
        };
        let all: Vec<Write> = (0..1_023).map(|number| record(&format!("full-{number}"), 0)).collect();
        metadata.commit(Vec::new(), all).await.unwrap();
        assert_eq!(create("last", "tenant", Trust::Proven).await, None);
        let refused = create("late", "tenant", Trust::Proven).await.unwrap();
        assert!(refused.contains("would have 1025 stores; one subject may have 1024"), "{refused}");
        assert!(read(&*metadata, "late").await.unwrap().is_none());
        // Nobody else is affected.
        assert_eq!(create("others", "other", Trust::Proven).await, None);
        assert_eq!(create("late", "root", Trust::Administrator).await, None);

        // A store that is dropped makes room, but not for more bytes than one subject may have.
        let drop = Write::delete(keys::store("full-0"));
        let large = (1..=5).map(|number| record(&format!("full-{number}"), 800 << 10));
        metadata.commit(Vec::new(), large.chain([drop]).collect()).await.unwrap();
        let refused = create("large", "tenant", Trust::Proven).await.unwrap();
        assert!(refused.contains("bytes of records of stores; one subject may have 4194304"), "{refused}");
        metadata.commit(Vec::new(), vec![record("full-5", 0)]).await.unwrap();
        assert_eq!(create("large", "tenant", Trust::Proven).await, None);
        stop.cancel();
    }
}
