//! One change of one store: read, decide, write on the condition that nothing changed meanwhile.

use super::{
    document::{document_of, policy_of, state_of},
    holders_of, now,
    refused::{ChangeError, conflict},
};
use crate::metadata::{Committed, Condition, MetadataStore, Write, keys};
use kith_versions::{Command, Context, Effect, Standing};
use kith_wire::documents::{
    ClusterDocument, ComponentDocument, DefinitionDocument, Document, RebalanceDocument, StoreDocument,
};

/// Others may change a store at the same moment; so often is looked again.
const COMMIT_TRIES: u32 = 20;

/// A store's record, and when it was changed last.
pub(super) struct Known {
    pub document: StoreDocument,
    pub revision: u64,
}

/// A change that was written.
#[derive(Debug)]
pub(super) struct Changed {
    pub before: StoreDocument,
    pub document: StoreDocument,
    pub revision: u64,
    pub effects: Vec<Effect>,
}

/// Who changes, and what the cluster looks like.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub who: &'a str,
    pub standing: Standing,
    pub cluster: &'a ClusterDocument,
}

impl<'a> Asker<'a> {
    /// A process of the cluster, which does nothing that is for owners.
    pub fn own(who: &'a str, cluster: &'a ClusterDocument) -> Self {
        Self { who, standing: Standing::default(), cluster }
    }
}

pub(super) async fn read(metadata: &dyn MetadataStore, store: &str) -> Result<Option<Known>, ChangeError> {
    let key = keys::store(store);
    let snapshot = metadata.read(&key).await?;
    let Some(entry) = snapshot.get(&key) else { return Ok(None) };
    Ok(Some(Known { document: StoreDocument::decode(&entry.value)?, revision: entry.revision }))
}

/// Applies `commands` in turn, as one write.
///
/// # Errors
/// [`ChangeError`]; nothing is changed then, unless the metadata store went away while it wrote.
pub(super) async fn change(
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
pub(super) async fn define(
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
pub(super) struct New<'a> {
    /// What a version that the commands begin is made of.
    pub components: &'a [ComponentDocument],
    /// `None`: as before.
    pub definition: Option<&'a DefinitionDocument>,
}

/// As [`change`], of a record as it was read; `None` if it has changed meanwhile.
pub(super) async fn change_known(
    metadata: &dyn MetadataStore,
    known: &Known,
    asker: Asker<'_>,
    commands: &[Command],
    new: New<'_>,
) -> Result<Option<Changed>, ChangeError> {
    let mut state = state_of(&known.document)?;
    let key = keys::store(&known.document.name);
    let mut conditions = vec![Condition { key: key.clone(), revision: known.revision }];
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
    let write = Write::put(key, document.encode());
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
