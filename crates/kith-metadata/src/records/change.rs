//! One change of one store: read, decide, write on the condition that nothing changed meanwhile.

use super::{
    bounds,
    document::{document_of, policy_of, state_of},
    holders_of, now,
    refused::{ChangeError, conflict},
};
use crate::{Committed, Condition, MetadataStore, Write, keys};
use kith_versions::{Command, Context, Effect, Trust};
use kith_wire::documents::{
    ClusterDocument, ComponentDocument, DefinitionDocument, Document, RebalanceDocument, StoreDocument,
};

/// Others may change a store at the same moment; so often is looked again.
const COMMIT_TRIES: u32 = 20;

/// A store's record, and when it was changed last.
pub struct Known {
    /// The record.
    pub document: StoreDocument,
    /// When it was changed last.
    pub revision: u64,
}

/// A change that was written.
#[derive(Debug)]
pub struct Changed {
    /// The record before it.
    pub before: StoreDocument,
    /// The record with it.
    pub document: StoreDocument,
    /// The revision at which it was written.
    pub revision: u64,
    /// What is to be done now.
    pub effects: Vec<Effect>,
}

/// Who changes, and what the cluster looks like.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// As the history names them.
    pub who: &'a str,
    /// What is known of them.
    pub standing: Trust,
    /// The cluster, for who holds the store.
    pub cluster: &'a ClusterDocument,
}

impl<'a> Asker<'a> {
    /// A process of the cluster, which does nothing that is for owners.
    pub fn own(who: &'a str, cluster: &'a ClusterDocument) -> Self {
        Self { who, standing: Trust::default(), cluster }
    }
}

/// The record of a store; `None` if there is none.
///
/// # Errors
/// [`ChangeError`]: it cannot be read.
pub async fn read(metadata: &dyn MetadataStore, store: &str) -> Result<Option<Known>, ChangeError> {
    let key = keys::store(store);
    let snapshot = metadata.read(&key).await?;
    let Some(entry) = snapshot.get(&key) else { return Ok(None) };
    Ok(Some(Known { document: StoreDocument::decode(&entry.value)?, revision: entry.revision }))
}

/// Applies `commands` in turn, as one write.
///
/// # Errors
/// [`ChangeError`]; nothing is changed then, unless the metadata store went away while it wrote.
pub async fn change(
    metadata: &dyn MetadataStore,
    store: &str,
    asker: Asker<'_>,
    commands: &[Command],
) -> Result<Changed, ChangeError> {
    for _ in 0..COMMIT_TRIES {
        let known = read(metadata, store).await?.ok_or(ChangeError::Unknown)?;
        if let Some(changed) = change_known(metadata, &known, asker, commands, New::default()).await? {
            return Ok(changed);
        }
    }
    Err(conflict(store).into())
}

/// Alters a store's definition, as one write, with a line in its history. What is the same as before is not written.
///
/// # Errors
/// As [`change`].
pub async fn define(
    metadata: &dyn MetadataStore,
    store: &str,
    asker: Asker<'_>,
    alter: impl Fn(&mut DefinitionDocument),
) -> Result<Changed, ChangeError> {
    for _ in 0..COMMIT_TRIES {
        let known = read(metadata, store).await?.ok_or(ChangeError::Unknown)?;
        let mut definition = known.document.definition.clone();
        alter(&mut definition);
        // Whoever may not alter it is told so, also where nothing would be altered.
        policy_of(&known.document.definition).guards.check_keeper(asker.who, asker.standing)?;
        if definition == known.document.definition {
            let (document, revision) = (known.document, known.revision);
            return Ok(Changed { before: document.clone(), document, revision, effects: Vec::new() });
        }
        let define = Command::Define { policy: policy_of(&definition) };
        let new = New { definition: Some(&definition), ..New::default() };
        if let Some(changed) = change_known(metadata, &known, asker, &[define], new).await? {
            return Ok(changed);
        }
    }
    Err(conflict(store).into())
}

/// What a change writes besides what the state machine says.
#[derive(Clone, Copy, Default)]
pub struct New<'a> {
    /// What a version that the commands begin is made of.
    pub components: &'a [ComponentDocument],
    /// `None`: as before.
    pub definition: Option<&'a DefinitionDocument>,
}

/// As [`change`], of a record as it was read; `None` if it has changed meanwhile.
pub async fn change_known(
    metadata: &dyn MetadataStore,
    known: &Known,
    asker: Asker<'_>,
    commands: &[Command],
    new: New<'_>,
) -> Result<Option<Changed>, ChangeError> {
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
    let holders = holders_of(asker.cluster, name, definition.replication);
    for command in commands {
        let Asker { who, standing, .. } = asker;
        let context = Context { now, who, standing, holders: &holders, rebalance: rebalance.as_deref() };
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
        return Ok(Some(Changed { before, document, revision: known.revision, effects }));
    }
    let record = document.encode();
    if commands.iter().any(|command| matches!(command, Command::Begin { .. })) {
        bounds::check_record(name, record.len())?;
    }
    let write = Write::put(key, record);
    match metadata.commit(conditions, vec![write]).await? {
        Committed::At(revision) => Ok(Some(Changed { before, document, revision, effects })),
        Committed::Conflict => Ok(None),
    }
}

/// The rebalance under way, if a push begins: the two keep each other out.
async fn rebalance(
    metadata: &dyn MetadataStore,
    commands: &[Command],
    conditions: &mut Vec<Condition>,
) -> Result<Option<String>, ChangeError> {
    if !commands.iter().any(|command| matches!(command, Command::Begin { .. })) {
        return Ok(None);
    }
    let snapshot = metadata.read(keys::REBALANCE).await?;
    let entry = snapshot.get(keys::REBALANCE);
    let revision = entry.map_or(0, |entry| entry.revision);
    conditions.push(Condition { key: keys::REBALANCE.to_owned(), revision });
    let document = entry.map(|entry| RebalanceDocument::decode(&entry.value)).transpose()?;
    Ok(document.map(|document| document.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EmbeddedMetadata;
    use kith_versions::PushId;
    use kith_wire::documents::{
        ColumnDocument, DOCUMENT_FORMAT, GroupDocument, HoldsDocument, VersionDocument,
    };

    /// Of a graph, with so many bytes of columns.
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

    #[tokio::test]
    async fn a_record_that_is_nearly_full_takes_no_push_and_every_other_change() {
        let (metadata, cluster) = (EmbeddedMetadata::in_memory(), cluster());
        let version = VersionDocument {
            version: 1,
            state: "current".to_owned(),
            components: vec![component(800 << 10)],
            records: 1,
            bytes: 1,
            pushed_at: 1,
            held: false,
            excluded: Vec::new(),
        };
        let document = StoreDocument {
            format: DOCUMENT_FORMAT,
            name: "people".to_owned(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 1,
            versions: vec![version],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: Vec::new(),
        };
        let write = Write::put(keys::store("people"), document.encode());
        metadata.commit(Vec::new(), vec![write]).await.unwrap();
        let asker = Asker::own("ada", &cluster);
        let begin = Command::Begin {
            push: PushId::from("p1"),
            coordinator: "router 0".to_owned(),
            version: None,
            missing_max: 0,
        };
        let known = read(&metadata, "people").await.unwrap().unwrap();
        for (bytes, code) in [(400 << 10, Some("record_too_large")), (100 << 10, None)] {
            let components = [component(bytes)];
            let new = New { components: &components, ..New::default() };
            let begun = change_known(&metadata, &known, asker, std::slice::from_ref(&begin), new).await;
            let told = begun.err().map(|error| kith_wire::detail_of(&error.to_status("people")).code);
            assert_eq!(told.as_deref(), code);
        }
        change(&metadata, "people", asker, &[Command::Freeze]).await.unwrap();
    }
}
