//! Parses the clauses of scripts about a query and its failures.

use kith_routing::execution::{Answers, ExecutionOptions, FailureClass, HedgeRule, RequestId};
use kith_sim::scenario::cluster::list;
use kith_sim::scenario::{Command, duration, number, numbered};
use kith_types::{Epoch, StoreVersion, Timestamp};
use std::time::Duration;

/// The reasons that scripts can name. `not_owner` is followed by the epoch of the node.
const REASONS: [FailureClass; 13] = [
    FailureClass::Connection,
    FailureClass::Timeout,
    FailureClass::NodeDown,
    FailureClass::VersionUnavailable { version: StoreVersion(1) },
    FailureClass::OtherPosition,
    FailureClass::Overloaded,
    FailureClass::Throttled,
    FailureClass::Damaged,
    FailureClass::Unsupported,
    FailureClass::Internal,
    FailureClass::BadRequest,
    FailureClass::DeadlineExceeded,
    FailureClass::Cancelled,
];

pub fn options(command: &Command<'_>) -> Result<ExecutionOptions, String> {
    let time = |word: &str| duration(word).map(Timestamp);
    let hedging = match command.clause("hedge") {
        None => None,
        Some(["after", time]) => Some(HedgeRule::fixed(duration(time)?, Duration::from_millis(1))),
        Some(_) => return Err("write \"hedge after TIME\"".to_owned()),
    };
    let retries = command.value("retries")?.map(number).transpose()?;
    let usual = ExecutionOptions::default();
    Ok(ExecutionOptions {
        deadline: command.value("deadline")?.map(time).transpose()?,
        partial: command.flag("partial")?,
        stop_early: command.flag("early")?,
        retries_max: retries.map_or(usual.retries_max, |retries| retries as u32),
        hedging,
        answers: if command.flag("sum")? { Answers::Together } else { Answers::ByKey },
        ..usual
    })
}

pub fn request_id(word: &str) -> Result<RequestId, String> {
    numbered(word, "r").map(RequestId)
}

pub fn class(reason: &[&str]) -> Result<FailureClass, String> {
    match reason {
        ["not_owner", epoch] => Ok(FailureClass::NotOwner { epoch: Epoch(numbered(epoch, "e")?.into()) }),
        [name] => {
            let class = REASONS.into_iter().find(|class| class.name() == *name);
            class.ok_or_else(|| {
                format!(
                    "unknown reason {name:?}; there is {}, not_owner e2",
                    list(REASONS.map(FailureClass::name))
                )
            })
        }
        _ => Err("a failure has one reason".to_owned()),
    }
}
