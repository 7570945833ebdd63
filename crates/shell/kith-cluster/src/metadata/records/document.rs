//! Converts a store's record to the state of the state machine and back. Which nodes are ready is not stored.

use super::bounds::{PUSH_ID_BYTES_MAX, REASON_BYTES_MAX, WHO_BYTES_MAX, plain};
use kith_topology::versions::{
    Action, CancelledPush, FreezeRecord, Guards, HistoryEntry, Outcome, Policy, PushId, RunningPush,
    StoreState, UnixMillis, VersionEntry, VersionState,
};
use kith_types::{NodeId, StoreVersion};
use kith_wire::documents::{
    CancelledDocument, ComponentDocument, DefinitionDocument, FrozenDocument, HistoryDocument,
    RunningDocument, StoreDocument, VersionDocument,
};
use thiserror::Error;

/// A record contains a name that this release does not know.
#[derive(Debug, Error)]
#[error("the record of store {store:?} names an unknown {what} {name:?}")]
pub struct UnknownName {
    store: String,
    what: &'static str,
    name: String,
}

/// Returns the parts of a definition that the state machine needs.
pub fn policy_of(definition: &DefinitionDocument) -> Policy {
    Policy {
        retain: definition.retain,
        quota_bytes: definition.quota_bytes,
        guards: Guards {
            records_min: definition.records_min,
            drop_percent_max: definition.drop_percent_max,
            owner: definition.owner.clone(),
        },
    }
}

/// Returns the state that a record describes.
///
/// # Errors
/// [`UnknownName`].
pub fn state_of(document: &StoreDocument) -> Result<StoreState, UnknownName> {
    let unknown =
        |what, name: &str| UnknownName { store: document.name.clone(), what, name: name.to_owned() };
    let versions = document.versions.iter().map(|entry| {
        let state =
            VersionState::by_name(&entry.state).ok_or_else(|| unknown("version state", &entry.state))?;
        Ok(VersionEntry {
            version: StoreVersion(entry.version),
            state,
            records: entry.records,
            bytes: entry.bytes,
            pushed_at: UnixMillis(entry.pushed_at),
            held: entry.held,
            excluded: entry.excluded.iter().copied().map(NodeId).collect(),
        })
    });
    let history = document.history.iter().map(|entry| {
        let action = Action::by_name(&entry.action).ok_or_else(|| unknown("action", &entry.action))?;
        Ok(HistoryEntry {
            at: UnixMillis(entry.at),
            who: entry.who.clone(),
            action,
            version: StoreVersion(entry.version),
            before: StoreVersion(entry.before),
            push: entry.push.clone().map(PushId),
            outcome: outcome_of(entry),
        })
    });
    Ok(StoreState {
        policy: policy_of(&document.definition),
        version_last: StoreVersion(document.version_last),
        versions: versions.collect::<Result<_, _>>()?,
        running: document.running.as_ref().map(running_of),
        frozen: document.frozen.as_ref().map(frozen_of),
        cancelled: document.cancelled.iter().map(cancelled_of).collect(),
        history: history.collect::<Result<_, _>>()?,
    })
}

fn outcome_of(entry: &HistoryDocument) -> Outcome {
    match (&entry.cancelled, &entry.failed) {
        (Some(why), _) => Outcome::Cancelled(why.clone()),
        (None, Some(reason)) => Outcome::Failed(reason.clone()),
        (None, None) => Outcome::Done,
    }
}

fn cancelled_of(CancelledDocument { push, who }: &CancelledDocument) -> CancelledPush {
    CancelledPush { push: PushId(push.clone()), who: who.clone() }
}

fn frozen_of(document: &FrozenDocument) -> FreezeRecord {
    FreezeRecord { who: document.who.clone(), since: UnixMillis(document.since) }
}

fn running_of(document: &RunningDocument) -> RunningPush {
    RunningPush {
        push: PushId(document.push.clone()),
        version: StoreVersion(document.version),
        who: document.who.clone(),
        coordinator: document.coordinator.clone(),
        since: UnixMillis(document.since),
        missing_max: document.missing_max,
        offered: document.offered,
        ready: Default::default(),
    }
}

/// Returns the record of `state`. Known versions keep their components from `before`; a new version gets `components`.
pub fn document_of(
    state: &StoreState,
    before: &StoreDocument,
    components: &[ComponentDocument],
) -> StoreDocument {
    let versions = state.versions.iter().map(|entry| {
        let known = before.versions.iter().find(|known| known.version == entry.version.0);
        let components = match (entry.state, known) {
            (VersionState::Failed, _) => Vec::new(),
            (_, Some(known)) => known.components.clone(),
            (_, None) => components.to_vec(),
        };
        VersionDocument {
            version: entry.version.0,
            state: entry.state.name().to_owned(),
            components,
            records: entry.records,
            bytes: entry.bytes,
            pushed_at: entry.pushed_at.0,
            held: entry.held,
            excluded: entry.excluded.iter().map(|node| node.0).collect(),
        }
    });
    StoreDocument {
        format: before.format,
        name: before.name.clone(),
        charged_to: before.charged_to.clone(),
        definition: before.definition.clone(),
        version_last: state.version_last.0,
        versions: versions.collect(),
        running: state.running.as_ref().map(running_document),
        frozen: state
            .frozen
            .as_ref()
            .map(|frozen| FrozenDocument { who: frozen.who.clone(), since: frozen.since.0 }),
        cancelled: state.cancelled.iter().map(cancelled_document).collect(),
        history: state.history.iter().map(history_of).collect(),
    }
}

fn running_document(running: &RunningPush) -> RunningDocument {
    RunningDocument {
        push: running.push.0.clone(),
        version: running.version.0,
        who: running.who.clone(),
        coordinator: running.coordinator.clone(),
        since: running.since.0,
        missing_max: running.missing_max,
        offered: running.offered,
    }
}

fn cancelled_document(CancelledPush { push, who }: &CancelledPush) -> CancelledDocument {
    CancelledDocument { push: push.0.clone(), who: who.clone() }
}

/// Returns an entry of the history with its texts cut, so that the history stays small.
fn history_of(entry: &HistoryEntry) -> HistoryDocument {
    HistoryDocument {
        at: entry.at.0,
        who: plain(&entry.who, WHO_BYTES_MAX),
        action: entry.action.name().to_owned(),
        version: entry.version.0,
        before: entry.before.0,
        push: entry.push.as_ref().map(|push| plain(&push.0, PUSH_ID_BYTES_MAX)),
        failed: match &entry.outcome {
            Outcome::Done | Outcome::Cancelled(_) => None,
            Outcome::Failed(reason) => Some(plain(reason, REASON_BYTES_MAX)),
        },
        cancelled: match &entry.outcome {
            Outcome::Cancelled(why) => Some(plain(why, REASON_BYTES_MAX)),
            Outcome::Done | Outcome::Failed(_) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_topology::versions::{Command, Context, Holders, Trust};
    use kith_wire::documents::{DOCUMENT_FORMAT, HoldsDocument};

    #[test]
    fn a_record_comes_back_as_it_was() {
        let holders = Holders { groups: vec![vec![NodeId(0)], vec![NodeId(1)]], drained: vec![] };
        let context = Context {
            now: UnixMillis(7),
            who: "ada",
            standing: Trust::Claimed,
            holders: &holders,
            rebalance: None,
        };
        let mut document = StoreDocument {
            format: DOCUMENT_FORMAT,
            name: "people".to_owned(),
            charged_to: String::new(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 0,
            versions: vec![],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: vec![],
        };
        let push = |push: &str| PushId::from(push);
        let begin = |id: &str| Command::Begin {
            push: push(id),
            coordinator: "router 0".to_owned(),
            version: None,
            missing_max: 1,
        };
        let commands = [
            begin("p1"),
            Command::Offer { push: push("p1"), records: 3, bytes: 4, force: false },
            Command::Ready { push: push("p1"), node: NodeId(0) },
            Command::NodeFailed { push: push("p1"), node: NodeId(1), reason: "gone".to_owned() },
            Command::Flip { push: push("p1") },
            Command::Hold { version: StoreVersion(7) },
            begin("p2"),
            Command::Abort { push: push("p2"), reason: "no".to_owned() },
            begin("p3"),
            Command::Cancel { push: None },
            Command::Cancel { push: Some(push("p9")) },
            Command::Freeze,
            Command::Thaw,
            begin("p4"),
            Command::Freeze,
        ];
        let mut state = state_of(&document).unwrap();
        for command in commands {
            state = state.apply(&command, &context).unwrap().state;
        }
        document = document_of(&state, &document, &[]);
        assert_eq!(state_of(&document).unwrap(), state);
        assert_eq!(document_of(&state, &document, &[]), document);
        document.versions[0].state = "odd".to_owned();
        let error = state_of(&document).unwrap_err().to_string();
        assert_eq!(error, "the record of store \"people\" names an unknown version state \"odd\"");
    }
}
