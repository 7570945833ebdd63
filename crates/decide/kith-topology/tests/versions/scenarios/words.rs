//! Converts commands of a script to commands of the state machine.

use kith_sim::scenario::{Command, number, numbered};
use kith_topology::versions::{Command as StoreCommand, PushId};
use kith_types::{NodeId, StoreVersion};

pub fn version(word: &str) -> Result<StoreVersion, String> {
    numbered(word, "v").map(|number| StoreVersion(number.into()))
}

pub fn begin(push: &str, version: Option<u64>, missing: u64) -> StoreCommand {
    StoreCommand::Begin {
        push: PushId::from(push),
        coordinator: "router 0".to_owned(),
        version: version.map(StoreVersion),
        missing_max: missing as u32,
    }
}

pub fn offer(push: &str, records: u64, bytes: u64, force: bool) -> StoreCommand {
    StoreCommand::Offer { push: PushId::from(push), records, bytes, force }
}

/// Parses commands that the state machine has under the same name; `None` for others.
pub fn parse(command: &Command<'_>) -> Result<Option<StoreCommand>, String> {
    let push = |id: &str| PushId::from(id);
    if let Some(parsed) = with_clauses(command)? {
        return Ok(Some(parsed));
    }
    let parsed = match command.words.as_slice() {
        [id, "fails", "on", node] => StoreCommand::NodeFailed {
            push: push(id),
            node: NodeId(numbered(node, "n")?),
            reason: format!("{node}: disk full"),
        },
        ["flip", id] => StoreCommand::Flip { push: push(id) },
        ["abort", id] => StoreCommand::Abort { push: push(id), reason: "gave up".to_owned() },
        ["cancel"] => StoreCommand::Cancel { push: None },
        ["cancel", id] => StoreCommand::Cancel { push: Some(push(id)) },
        ["recover", id] => StoreCommand::Recover { push: push(id) },
        ["hold", word] => StoreCommand::Hold { version: version(word)? },
        ["release", word] => StoreCommand::Release { version: version(word)? },
        ["block", word] => StoreCommand::Block { version: version(word)? },
        ["unblock", word] => StoreCommand::Unblock { version: version(word)? },
        [node, "has", "repaired", word] => {
            StoreCommand::Repaired { version: version(word)?, node: NodeId(numbered(node, "n")?) }
        }
        ["freeze"] => StoreCommand::Freeze,
        ["thaw"] => StoreCommand::Thaw,
        _ => return Ok(None),
    };
    command.clauses_are(&[])?;
    Ok(Some(parsed))
}

fn with_clauses(command: &Command<'_>) -> Result<Option<StoreCommand>, String> {
    let value = |name: &str| command.value(name)?.map(number).transpose();
    Ok(Some(match command.words.as_slice() {
        ["push", push] => {
            command.clauses_are(&["version", "missing"])?;
            begin(push, value("version")?, value("missing")?.unwrap_or(0))
        }
        [push, "holds", records, "records"] => {
            command.clauses_are(&["bytes", "force"])?;
            let records = number(records)?;
            offer(push, records, value("bytes")?.unwrap_or(records), command.flag("force")?)
        }
        ["swap", "to", word] => {
            command.clauses_are(&["force"])?;
            StoreCommand::Swap { to: version(word)?, force: command.flag("force")? }
        }
        ["roll", "back"] => {
            command.clauses_are(&["to", "force"])?;
            let to = command.value("to")?.map(version).transpose()?;
            StoreCommand::Rollback { to, force: command.flag("force")? }
        }
        _ => return Ok(None),
    }))
}
