//! The keys of single processes in a `--config` file.

use super::{FetchP99, FetchRate, LogRetention, ScrubRate, WarmBytes};
use crate::failure::Failure;
use kith_node::Labels;
use kith_types::ErrorCode;
use serde::Deserialize;
use std::{net::SocketAddr, num::NonZeroU16, path::PathBuf};

/// The entry of one process, of any role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessEntry {
    pub id: u32,
    pub listen: Option<SocketAddr>,
    pub http: Option<SocketAddr>,
    pub resp: Option<SocketAddr>,
    pub threads: Option<NonZeroU16>,
    pub data: Option<PathBuf>,
    pub end_with_stdin: bool,
    /// These two are only for a router.
    pub gremlin: Option<SocketAddr>,
    pub record: Option<PathBuf>,
    /// These five are only for a node.
    pub scrub_rate: Option<ScrubRate>,
    pub fetch_rate: Option<FetchRate>,
    pub fetch_p99: Option<FetchP99>,
    pub warm_bytes: Option<WarmBytes>,
    pub log_retention: Option<LogRetention>,
    pub labels: Labels,
}

/// A `[[node]]` entry of the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NodeEntry {
    node: u32,
    listen: Option<SocketAddr>,
    http: Option<SocketAddr>,
    resp: Option<SocketAddr>,
    threads: Option<NonZeroU16>,
    data: Option<PathBuf>,
    scrub_rate: Option<ScrubRate>,
    fetch_rate: Option<FetchRate>,
    fetch_p99: Option<FetchP99>,
    warm_bytes: Option<WarmBytes>,
    log_retention: Option<LogRetention>,
    #[serde(default)]
    zone: String,
    #[serde(default)]
    rack: String,
    #[serde(default)]
    region: String,
    #[serde(default)]
    end_with_stdin: bool,
}

/// A `[[router]]` entry of the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RouterEntry {
    id: u32,
    listen: Option<SocketAddr>,
    http: Option<SocketAddr>,
    resp: Option<SocketAddr>,
    gremlin: Option<SocketAddr>,
    threads: Option<NonZeroU16>,
    data: Option<PathBuf>,
    record: Option<PathBuf>,
    #[serde(default)]
    end_with_stdin: bool,
}

/// A `[[database]]` entry of the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DatabaseEntry {
    id: u32,
    listen: Option<SocketAddr>,
    http: Option<SocketAddr>,
    threads: Option<NonZeroU16>,
    data: Option<PathBuf>,
    #[serde(default)]
    end_with_stdin: bool,
}

impl NodeEntry {
    /// Returns the node's id and labels.
    pub fn labels(&self) -> (u32, Labels) {
        (self.node, self.own_labels())
    }

    fn own_labels(&self) -> Labels {
        Labels { zone: self.zone.clone(), rack: self.rack.clone(), region: self.region.clone() }
    }
}

impl From<NodeEntry> for ProcessEntry {
    fn from(entry: NodeEntry) -> Self {
        Self {
            labels: entry.own_labels(),
            id: entry.node,
            listen: entry.listen,
            http: entry.http,
            resp: entry.resp,
            threads: entry.threads,
            data: entry.data,
            end_with_stdin: entry.end_with_stdin,
            scrub_rate: entry.scrub_rate,
            fetch_rate: entry.fetch_rate,
            fetch_p99: entry.fetch_p99,
            warm_bytes: entry.warm_bytes,
            log_retention: entry.log_retention,
            gremlin: None,
            record: None,
        }
    }
}

impl From<RouterEntry> for ProcessEntry {
    fn from(entry: RouterEntry) -> Self {
        Self {
            id: entry.id,
            listen: entry.listen,
            http: entry.http,
            resp: entry.resp,
            threads: entry.threads,
            data: entry.data,
            end_with_stdin: entry.end_with_stdin,
            gremlin: entry.gremlin,
            record: entry.record,
            ..Self::default()
        }
    }
}

impl From<DatabaseEntry> for ProcessEntry {
    fn from(entry: DatabaseEntry) -> Self {
        Self {
            id: entry.id,
            listen: entry.listen,
            http: entry.http,
            threads: entry.threads,
            data: entry.data,
            end_with_stdin: entry.end_with_stdin,
            ..Self::default()
        }
    }
}

/// Returns the entry with this id, or the only entry if `id` is `None`. If the file has no entries at all, returns an empty
/// entry with this id.
///
/// # Errors
/// If no entry matches, or more than one. `flag` and `section` are for the messages, which say how to name one.
pub fn choose(
    owns: Vec<ProcessEntry>,
    id: Option<u32>,
    flag: &str,
    section: &str,
) -> Result<ProcessEntry, Failure> {
    let there: Vec<String> = owns.iter().map(|own| own.id.to_string()).collect();
    let there = there.join(", ");
    let mut meant = owns.iter().filter(|own| id.is_none_or(|id| own.id == id));
    match (meant.next(), meant.next(), id) {
        (Some(own), None, _) => Ok(own.clone()),
        (None, _, Some(id)) if owns.is_empty() => Ok(ProcessEntry { id, ..ProcessEntry::default() }),
        (None, _, None) => Err(Failure::usage(format!("{flag} is missing"), "it identifies this process")),
        (None, _, Some(id)) => {
            let help = format!("it has {there}; add one, or check {flag}");
            Err(Failure::usage(format!("the --config file has no {section} {id}"), help))
        }
        (Some(_), Some(_), Some(id)) => {
            let message = format!("the --config file has more than one {section} {id}");
            Err(Failure::new(ErrorCode::BadSettings, message, "give each process an id of its own"))
        }
        (Some(_), Some(_), None) => {
            Err(Failure::usage(format!("{flag} is missing"), format!("the file has {section} {there}")))
        }
    }
}
