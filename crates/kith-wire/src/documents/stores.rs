//! Documents of stores: definition, versions, the push under way, history.

use super::{ComponentDocument, Document, KeptDocument, ServedDocument, names};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// A store: key `stores/<name>`. Every change of it is one conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreDocument {
    /// Document format.
    pub format: u32,
    /// The store: a part of paths, hence checked when it is read.
    #[serde(deserialize_with = "names::store")]
    pub name: String,
    /// What it holds and how.
    pub definition: DefinitionDocument,
    /// The greatest version number ever used, also by a store of this name that was dropped; 0: none.
    pub version_last: u64,
    /// Versions that are known, ascending.
    pub versions: Vec<VersionDocument>,
    /// The push under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningDocument>,
    /// Set while no push is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FrozenDocument>,
    /// Pushes that were cancelled before they began, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<CancelledDocument>,
    /// What was done, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryDocument>,
}
impl Document for StoreDocument {
    const WHAT: &'static str = "store";
}

/// What a store holds and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionDocument {
    /// A graph or values.
    #[serde(flatten)]
    pub holds: HoldsDocument,
    /// Versions kept beside the current one and those that are held.
    pub retain: u32,
    /// How many groups hold it; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<u32>,
    /// Answers that must agree.
    pub required_reads: u32,
    /// Bytes that the kept versions may take together at one replica; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// Keys of it that may be read a second, over all routers; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_quota_keys: Option<NonZeroU64>,
    /// Bytes of its values that may be read a second, over all routers; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_quota_bytes: Option<NonZeroU64>,
    /// Fewest records of a version.
    pub records_min: u64,
    /// A version may have so many per cent fewer records than the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_percent_max: Option<u8>,
    /// Who alone may push.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Of records: the schema of the first version, in its canonical form; `None`: what that version's rows agree on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// What a store holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "holds", rename_all = "snake_case")]
pub enum HoldsDocument {
    /// Components by edge type and entity kind.
    Graph,
    /// Keys with values: one component, `values`.
    Values {
        /// `id`, `string` or `bytes`.
        key: String,
        /// `text`, `bytes`, `json` or `record`.
        value: String,
        /// Which field of the input is the key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_field: Option<String>,
    },
}

impl DefinitionDocument {
    /// Versions kept unless the definition says otherwise.
    pub const RETAIN_DEFAULT: u32 = 2;

    /// Of a store that holds this, with the defaults.
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
        }
    }
}

/// One version of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionDocument {
    /// Its number.
    pub version: u64,
    /// `current`, `retained`, `blocked`, `fetching` or `failed`.
    pub state: String,
    /// What it is made of; nothing if it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentDocument>,
    /// How many records it has: of a graph, its edges.
    pub records: u64,
    /// Bytes of one replica.
    pub bytes: u64,
    /// When its push began, milliseconds since 1970.
    pub pushed_at: u64,
    /// Never cleaned up while set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Nodes that do not have it yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<u32>,
}

/// A push under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningDocument {
    /// Its id.
    pub push: String,
    /// The version that it makes.
    pub version: u64,
    /// Who asked for it.
    pub who: String,
    /// The router that runs it and which start of that router: the value of its leased key while it lives.
    pub coordinator: String,
    /// Since when, milliseconds since 1970.
    pub since: u64,
    /// How many nodes may be left out.
    pub missing_max: u32,
    /// Whether it passed the guards.
    pub offered: bool,
}

/// No push of the store is accepted until somebody thaws it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenDocument {
    /// Who froze it.
    pub who: String,
    /// Since when, milliseconds since 1970.
    pub since: u64,
}

/// A push that was cancelled before it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelledDocument {
    /// Its id.
    pub push: String,
    /// Who cancelled it.
    pub who: String,
}

/// One line of a store's audit record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryDocument {
    /// When, milliseconds since 1970.
    pub at: u64,
    /// Who asked for it.
    pub who: String,
    /// `push`, `swap`, `rollback`, `hold`, `release`, `block`, `unblock`, `repair`, `define`, `freeze` or `thaw`.
    pub action: String,
    /// Of which version.
    pub version: u64,
    /// The version that was served before; 0: none.
    pub before: u64,
    /// Which push, if one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
    /// Why it failed; `None`: it was done or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Who or what cancelled it; `None`: nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
}

/// What is left of a dropped store, so that its numbers are not used again: key `dropped/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedDocument {
    /// Document format.
    pub format: u32,
    /// The greatest version number it used.
    pub version_last: u64,
}
impl Document for DroppedDocument {
    const WHAT: &'static str = "dropped store";
}

impl StoreDocument {
    /// The version that is served.
    pub fn current(&self) -> Option<&VersionDocument> {
        self.versions.iter().find(|version| version.state == "current")
    }

    /// The store at one of its versions.
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

    /// The store as it is served.
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

    /// The versions that nodes keep beside the one that is served.
    pub fn kept(&self) -> impl Iterator<Item = KeptDocument> {
        let kept = |version: &&VersionDocument| {
            matches!(version.state.as_str(), "retained" | "blocked" | "fetching")
        };
        let versions = self.versions.iter().filter(kept);
        versions.map(|version| KeptDocument { is_whole: version.state != "fetching", at: self.at(version) })
    }
}
