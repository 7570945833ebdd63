//! Documents of stores: the definition, the versions, the push under way, and the history.

use super::{ComponentDocument, Document, KeptDocument, ServedDocument, names};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// A store, under the key `stores/<name>`. Every change is one conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreDocument {
    /// Document format.
    pub format: u32,
    /// The name of the store. It becomes part of a path, so it is checked when it is read.
    #[serde(deserialize_with = "names::store")]
    pub name: String,
    /// The subject whose share the record counts towards; empty if an administrator created the store.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub charged_to: String,
    /// The store's definition.
    pub definition: DefinitionDocument,
    /// The greatest version number ever used, including by a dropped store of this name; 0 means none.
    pub version_last: u64,
    /// The known versions, ascending.
    pub versions: Vec<VersionDocument>,
    /// The push under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningDocument>,
    /// The freeze; `None` unless pushes are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FrozenDocument>,
    /// Pushes that were cancelled before they began, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<CancelledDocument>,
    /// The audit record, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryDocument>,
}
impl Document for StoreDocument {
    const WHAT: &'static str = "store";
}

/// A store's definition: the kind of data, how it is kept, and which guards a push must pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionDocument {
    /// Whether the store holds a graph or values.
    #[serde(flatten)]
    pub holds: HoldsDocument,
    /// The number of versions kept in addition to the current one and the held ones.
    pub retain: u32,
    /// The number of groups that hold the store. `None` means all groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<u32>,
    /// The number of replicas that must agree on an answer.
    pub required_reads: u32,
    /// The most bytes that all kept versions together may take at one replica. `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// The most keys that may be read per second, over all routers. `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_quota_keys: Option<NonZeroU64>,
    /// The most bytes of values that may be read per second, over all routers. `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_quota_bytes: Option<NonZeroU64>,
    /// The fewest records that a new version may have.
    pub records_min: u64,
    /// The largest allowed drop in records from the current version to a new one, in per cent. `None` means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_percent_max: Option<u8>,
    /// The only user who may push. `None` means anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// For records, the schema of the first version in canonical form. `None` means that it is inferred from that
    /// version's rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// For a graph, the store of records whose fields are the properties of its members. `None` means that they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<String>,
}

/// The kind of data in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "holds", rename_all = "snake_case")]
pub enum HoldsDocument {
    /// A graph: components by edge type and entity kind.
    Graph,
    /// Values by key: one component, named `values`.
    Values {
        /// The type of the keys: `id`, `string` or `bytes`.
        key: String,
        /// The type of the values: `text`, `bytes`, `json` or `record`.
        value: String,
        /// The field of the input rows that holds the key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_field: Option<String>,
    },
}

impl DefinitionDocument {
    /// The number of versions kept besides the current one unless the definition says otherwise: the previous one, and the
    /// one before it in case the previous one is suspect.
    pub const RETAIN_DEFAULT: u32 = 2;

    /// Returns the definition of a store that holds this, with defaults for everything else.
    pub fn new(holds: HoldsDocument) -> Self {
        Self {
            holds,
            retain: Self::RETAIN_DEFAULT,
            replication: None,
            required_reads: 1,
            quota_bytes: None,
            read_quota_keys: None,
            read_quota_bytes: None,
            records_min: 0,
            drop_percent_max: None,
            owner: None,
            schema: None,
            properties: None,
        }
    }
}

/// One version of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionDocument {
    /// The number of the version.
    pub version: u64,
    /// `current`, `retained`, `blocked`, `fetching` or `failed`.
    pub state: String,
    /// The components; empty if the version failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentDocument>,
    /// The number of records; for a graph, the number of edges.
    pub records: u64,
    /// The size of one replica, in bytes.
    pub bytes: u64,
    /// The time at which its push began, in milliseconds since 1970.
    pub pushed_at: u64,
    /// Whether retention never removes the version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// The nodes that do not have the version yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u32>,
}

/// A push under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningDocument {
    /// The id of the push.
    pub push: String,
    /// The version that the push builds.
    pub version: u64,
    /// The user who requested it.
    pub who: String,
    /// The router that coordinates the push, and which start of that router. It equals the value of the router's leased
    /// key while that router is alive.
    pub coordinator: String,
    /// The time at which the push began, in milliseconds since 1970.
    pub since: u64,
    /// The number of nodes that may be left out if they fail.
    pub missing_max: u32,
    /// Whether the push has passed or overridden the guards, so that nodes may prepare the version.
    pub offered: bool,
}

/// A freeze: no push of the store is accepted until somebody thaws it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenDocument {
    /// The user who froze it.
    pub who: String,
    /// The time at which the store was frozen, in milliseconds since 1970.
    pub since: u64,
}

/// A push that was cancelled before it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelledDocument {
    /// The id of the push.
    pub push: String,
    /// The user who cancelled it.
    pub who: String,
}

/// One line of a store's audit record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryDocument {
    /// The time at which it happened, in milliseconds since 1970.
    pub at: u64,
    /// The user or process that requested it.
    pub who: String,
    /// `push`, `swap`, `rollback`, `hold`, `release`, `block`, `unblock`, `repair`, `define`, `freeze` or `thaw`.
    pub action: String,
    /// The version that the action concerns.
    pub version: u64,
    /// The version that was served before; 0 means none.
    pub before: u64,
    /// The id of the push, if the action is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
    /// The reason why the action failed; `None` if it was done or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The user or the event that cancelled the action; `None` if it was not cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
}

/// The remains of a dropped store, under the key `dropped/<name>`. They keep its version numbers from being used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedDocument {
    /// Document format.
    pub format: u32,
    /// The greatest version number that the store used.
    pub version_last: u64,
}
impl Document for DroppedDocument {
    const WHAT: &'static str = "dropped store";
}

impl StoreDocument {
    /// Returns the version that is served.
    pub fn current(&self) -> Option<&VersionDocument> {
        self.versions.iter().find(|version| version.state == "current")
    }

    /// Returns the store at one of its versions.
    pub fn at(&self, version: &VersionDocument) -> ServedDocument {
        ServedDocument {
            format: self.format,
            name: self.name.clone(),
            definition: self.definition.clone(),
            version: version.version,
            components: version.components.clone(),
            excluded: version.excluded.clone(),
        }
    }

    /// Returns the store at the version that is served.
    pub fn served(&self) -> ServedDocument {
        match self.current() {
            Some(current) => self.at(current),
            None => ServedDocument {
                format: self.format,
                name: self.name.clone(),
                definition: self.definition.clone(),
                version: 0,
                components: Vec::new(),
                excluded: Vec::new(),
            },
        }
    }

    /// Returns the versions that nodes keep in addition to the one that is served.
    pub fn kept(&self) -> impl Iterator<Item = KeptDocument> {
        let kept = |version: &&VersionDocument| {
            matches!(version.state.as_str(), "retained" | "blocked" | "fetching")
        };
        let versions = self.versions.iter().filter(kept);
        versions.map(|version| KeptDocument { is_whole: version.state != "fetching", at: self.at(version) })
    }
}
