//! One change of one store: read, decide, and write on condition that nothing changed meanwhile.

use super::{
    bounds,
    document::{document_of, policy_of, state_of},
    holders_of, now,
    refused::{ChangeError, conflict},
    shares::{Amount, ShareKind, Shares},
};
use crate::metadata::{CommitOutcome, Condition, MetadataStore, Write, keys};
use kith_topology::versions::{Command, Context, Effect, Rebalance, Trust};
use kith_wire::documents::{
    ClusterDocument, ComponentDocument, DefinitionDocument, Document, PhaseDocument, RebalanceDocument,
    StoreDocument,
};

/// The maximum number of attempts to make a change while others change the same store.
const COMMIT_TRIES: u32 = 20;

/// A push that adds so little to a record does not wait for others that add something at the same time.
const SMALL_BYTES: u64 = 16 << 10;

/// A store's record with its revision.
pub struct StoreEntry {
    /// The record.
    pub document: StoreDocument,
    /// The revision of its last change.
    pub revision: u64,
}

/// A change that was written.
#[derive(Debug)]
pub struct WrittenChange {
    /// The record before the change.
    pub before: StoreDocument,
    /// The record after the change.
    pub document: StoreDocument,
    /// The revision of the change.
    pub revision: u64,
    /// The actions that are due after the change.
    pub effects: Vec<Effect>,
}

/// The subject who makes a change, and the cluster that it applies to.
#[derive(Clone, Copy)]
pub struct ChangeCaller<'a> {
    /// The name for the history.
    pub who: &'a str,
    /// The trust in the identity.
    pub standing: Trust,
    /// The cluster, which decides who holds the store.
    pub cluster: &'a ClusterDocument,
}

impl<'a> ChangeCaller<'a> {
    /// Returns the identity of a process of the cluster. It may not do what is reserved for owners.
    pub fn own(who: &'a str, cluster: &'a ClusterDocument) -> Self {
        Self { who, standing: Trust::default(), cluster }
    }
}

/// Returns the record of a store; `None` if there is none.
///
/// # Errors
/// [`ChangeError`] if the record cannot be read.
pub async fn read(metadata: &dyn MetadataStore, store: &str) -> Result<Option<StoreEntry>, ChangeError> {
    let key = keys::store(store);
    let snapshot = metadata.read(&key).await?;
    let Some(entry) = snapshot.get(&key) else { return Ok(None) };
    Ok(Some(StoreEntry { document: StoreDocument::decode(&entry.value)?, revision: entry.revision }))
}

/// Applies `commands` in order, as one write.
///
/// # Errors
/// [`ChangeError`]. Nothing is changed then, unless the metadata store failed while it wrote.
pub async fn change(
    metadata: &dyn MetadataStore,
    store: &str,
    caller: ChangeCaller<'_>,
    commands: &[Command],
) -> Result<WrittenChange, ChangeError> {
    for _ in 0..COMMIT_TRIES {
        let known = read(metadata, store).await?.ok_or(ChangeError::Unknown)?;
        if let Some(changed) = change_known(metadata, &known, caller, commands, New::default()).await? {
            return Ok(changed);
        }
    }
    Err(conflict(store).into())
}

/// Alters a store's definition, as one write, with an entry in its history. A definition that stays the same is not written.
///
/// # Errors
/// The errors of [`change`].
pub async fn define(
    metadata: &dyn MetadataStore,
    store: &str,
    caller: ChangeCaller<'_>,
    alter: impl Fn(&mut DefinitionDocument),
) -> Result<WrittenChange, ChangeError> {
    for _ in 0..COMMIT_TRIES {
        let known = read(metadata, store).await?.ok_or(ChangeError::Unknown)?;
        let mut definition = known.document.definition.clone();
        alter(&mut definition);
        // Refuse a caller without the right even if nothing would be altered.
        policy_of(&known.document.definition).guards.check_keeper(caller.who, caller.standing)?;
        if definition == known.document.definition {
            let (document, revision) = (known.document, known.revision);
            return Ok(WrittenChange { before: document.clone(), document, revision, effects: Vec::new() });
        }
        let define = Command::Define { policy: policy_of(&definition) };
        let new = New { definition: Some(&definition), ..New::default() };
        if let Some(changed) = change_known(metadata, &known, caller, &[define], new).await? {
            return Ok(changed);
        }
    }
    Err(conflict(store).into())
}

/// The records that a change writes in addition to the result of the state machine.
#[derive(Clone, Copy, Default)]
pub struct New<'a> {
    /// The components of a version that the commands begin.
    pub components: &'a [ComponentDocument],
    /// The new definition; `None` leaves it as it is.
    pub definition: Option<&'a DefinitionDocument>,
}

/// Like [`change`], on a record that was read before. Returns `None` if it has changed since.
pub async fn change_known(
    metadata: &dyn MetadataStore,
    known: &StoreEntry,
    caller: ChangeCaller<'_>,
    commands: &[Command],
    new: New<'_>,
) -> Result<Option<WrittenChange>, ChangeError> {
    let mut state = state_of(&known.document)?;
    let key = keys::store(&known.document.name);
    let mut conditions = vec![Condition { key: key.clone(), revision: known.revision }];
    if known.revision == 0 {
        // A new store must not take the name of a live graph.
        conditions.push(Condition { key: keys::live_graph(&known.document.name), revision: 0 });
    }
    let rebalance = rebalance(metadata, commands, &mut conditions).await?;
    let (now, mut effects) = (now(), Vec::new());
    let StoreDocument { name, definition, .. } = &known.document;
    let holders = holders_of(caller.cluster, name, definition.replication);
    for command in commands {
        let ChangeCaller { who, standing, .. } = caller;
        let rebalance = rebalance.as_ref().map(|(id, is_stopped)| Rebalance { id, is_stopped: *is_stopped });
        let context = Context { now, who, standing, holders: &holders, rebalance };
        let transition = state.apply(command, &context)?;
        state = transition.state;
        effects.extend(transition.effects);
    }
    let mut document = document_of(&state, &known.document, new.components);
    if let Some(definition) = new.definition {
        document.definition.clone_from(definition);
    }
    let before = known.document.clone();
    if document == before {
        return Ok(Some(WrittenChange { before, document, revision: known.revision, effects }));
    }
    let record = document.encode();
    let mut writes = Vec::new();
    if commands.iter().any(|command| matches!(command, Command::Begin { .. })) {
        bounds::check_record(name, record.len())?;
        let share = check_share(metadata, known, &document, record.len()).await?;
        if let Some(shares) = share {
            conditions.push(shares.condition());
            writes.push(shares.write());
        }
    }
    writes.push(Write::put(key, record));
    match metadata.commit(conditions, writes).await? {
        CommitOutcome::At(revision) => Ok(Some(WrittenChange { before, document, revision, effects })),
        CommitOutcome::Conflict => Ok(None),
    }
}

/// Checks that a record may take so many bytes. Returns the shares on which the change depends, if it adds a store or many bytes.
async fn check_share(
    metadata: &dyn MetadataStore,
    known: &StoreEntry,
    document: &StoreDocument,
    bytes: usize,
) -> Result<Option<Shares>, ChangeError> {
    let shares = Shares::read(metadata, ShareKind::Stores).await?;
    let before = match known.revision {
        0 => Amount::default(),
        _ => Amount { count: 1, bytes: known.document.encode().len() as u64 },
    };
    let after = Amount { count: 1, bytes: bytes as u64 };
    shares.check(&document.charged_to, before, after)?;
    let is_large = before.count == 0 || SMALL_BYTES < after.bytes.saturating_sub(before.bytes);
    Ok(is_large.then_some(shares))
}

/// Returns the id of the running rebalance, and whether it has stopped, if the commands begin a push, because pushes and rebalances exclude each other.
async fn rebalance(
    metadata: &dyn MetadataStore,
    commands: &[Command],
    conditions: &mut Vec<Condition>,
) -> Result<Option<(String, bool)>, ChangeError> {
    if !commands.iter().any(|command| matches!(command, Command::Begin { .. })) {
        return Ok(None);
    }
    let snapshot = metadata.read(keys::REBALANCE).await?;
    let entry = snapshot.get(keys::REBALANCE);
    let revision = entry.map_or(0, |entry| entry.revision);
    conditions.push(Condition { key: keys::REBALANCE.to_owned(), revision });
    let document = entry.map(|entry| RebalanceDocument::decode(&entry.value)).transpose()?;
    Ok(document.map(|document| (document.id, matches!(document.phase, PhaseDocument::Stopped { .. }))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::EmbeddedMetadata;
    use kith_topology::versions::PushId;
    use kith_wire::documents::{
        ColumnDocument, DOCUMENT_FORMAT, GroupDocument, HoldsDocument, VersionDocument,
    };

    /// Returns a component of a graph with `bytes` bytes of columns.
    fn component(bytes: usize) -> ComponentDocument {
        ComponentDocument {
            name: "connection".to_owned(),
            role: "undirected".to_owned(),
            version: 1,
            manifest_hash: String::new(),
            columns: vec![ColumnDocument { name: "x".repeat(bytes), kind: "u64".to_owned() }],
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
            schema: None,
            folder: None,
            url: None,
        }
    }

    fn cluster() -> ClusterDocument {
        ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: String::new(),
            epoch: 1,
            partitions: 1,
            groups: vec![GroupDocument { group: 0, nodes: vec![0], owners: vec![0], role: String::new() }],
            object_store: String::new(),
            strategy: String::new(),
            listed: Vec::new(),
            partition_epochs: Vec::new(),
        }
    }

    /// Writes the record of a graph that is charged to `subject`, with `bytes` bytes of columns.
    async fn put(metadata: &EmbeddedMetadata, name: &str, subject: &str, bytes: usize) {
        let version = VersionDocument {
            version: 1,
            state: "current".to_owned(),
            components: vec![component(bytes)],
            records: 1,
            bytes: 1,
            pushed_at: 1,
            held: false,
            excluded: Vec::new(),
        };
        let document = StoreDocument {
            format: DOCUMENT_FORMAT,
            name: name.to_owned(),
            charged_to: subject.to_owned(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 1,
            versions: vec![version],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: Vec::new(),
        };
        let write = Write::put(keys::store(name), document.encode());
        metadata.commit(Vec::new(), vec![write]).await.unwrap();
    }

    fn begin() -> Command {
        let coordinator = "router 0".to_owned();
        Command::Begin { push: PushId::from("p1"), coordinator, version: None, missing_max: 0 }
    }

    /// The code of the error with which a push of a component with `bytes` bytes of columns is refused, and its message.
    async fn pushed(metadata: &EmbeddedMetadata, store: &str, bytes: usize) -> Option<(String, String)> {
        let (cluster, components) = (cluster(), [component(bytes)]);
        let known = read(metadata, store).await.unwrap().unwrap();
        let new = New { components: &components, ..New::default() };
        let begun = change_known(metadata, &known, ChangeCaller::own("ada", &cluster), &[begin()], new).await;
        let status = begun.err()?.to_status(store);
        Some((kith_wire::detail_of(&status).code, status.message().to_owned()))
    }

    #[tokio::test]
    async fn a_record_that_is_nearly_full_takes_no_push_and_every_other_change() {
        let (metadata, cluster) = (EmbeddedMetadata::in_memory(), cluster());
        put(&metadata, "people", "", 800 << 10).await;
        let caller = ChangeCaller::own("ada", &cluster);
        for (bytes, code) in [(400 << 10, Some("record_too_large")), (100 << 10, None)] {
            let refusal = pushed(&metadata, "people", bytes).await.map(|(code, _)| code);
            assert_eq!(refusal.as_deref(), code);
        }
        change(&metadata, "people", caller, &[Command::Freeze]).await.unwrap();
    }

    #[tokio::test]
    async fn records_of_one_subject_grow_by_pushes_up_to_its_bound() {
        let metadata = EmbeddedMetadata::in_memory();
        for number in 0..4 {
            put(&metadata, &format!("ada-{number}"), "ada", 900 << 10).await;
        }
        put(&metadata, "ada-small", "ada", 100 << 10).await;
        put(&metadata, "others", "bob", 100 << 10).await;
        let (code, message) = pushed(&metadata, "ada-small", 400 << 10).await.expect("a bound");
        assert!(code == "out_of_range" && message.contains("one subject may have 4194304"), "{message}");
        assert_eq!(read(&metadata, "ada-small").await.unwrap().unwrap().document.running, None);
        assert_eq!(pushed(&metadata, "others", 400 << 10).await, None);
        assert_eq!(pushed(&metadata, "ada-small", 100 << 10).await, None);
    }
}
