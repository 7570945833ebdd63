//! The share of each subject in what every process of a cluster reads: the records of the stores that it has created,
//! and its live graphs with their types. A subject that may create things under one prefix must not make the topology
//! so large that the whole cluster suffers.
//!
//! A change that adds something reads the shares, decides, and is written on condition that nothing was added meanwhile.

use crate::metadata::{Condition, MetadataError, MetadataStore, Write, keys};
use kith_topology::versions::Trust;
use kith_types::ErrorCode;
use kith_wire::documents::{Document, DocumentError, LiveGraphDocument, StoreDocument};
use std::{collections::BTreeMap, ops::AddAssign};
use tonic::Status;

/// The things whose amount is limited, for each subject and for all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareKind {
    /// Stores, including loaded graphs.
    Stores,
    /// Live graphs.
    Graphs,
}

/// A number of things, and how many bytes they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of stores or live graphs.
    pub count: u64,
    /// The bytes of the stores' records, or of the graphs' types.
    pub bytes: u64,
}

/// The amounts of all subjects, and the revision at which they were read.
#[derive(Clone, Debug)]
pub struct Shares {
    shared: ShareKind,
    of: BTreeMap<String, Amount>,
    revision: u64,
}

/// Returns the subject to whom something new is charged; no name if the bounds of one subject do not hold for the caller. They
/// hold for subjects with rights for some stores. They neither bind administrators, nor callers who only claim a name, because
/// such a caller could claim another.
pub fn charged_to(who: &str, standing: Trust) -> String {
    if standing == Trust::Proven { who.to_owned() } else { String::new() }
}

impl ShareKind {
    /// The most that one subject may have, and the most that there may be in all.
    const fn bounds(self) -> (Amount, Amount) {
        const MIB: u64 = 1 << 20;
        match self {
            ShareKind::Stores => {
                (Amount { count: 1_024, bytes: 4 * MIB }, Amount { count: 8_192, bytes: 32 * MIB })
            }
            ShareKind::Graphs => {
                (Amount { count: 64, bytes: 4 * MIB }, Amount { count: 512, bytes: 32 * MIB })
            }
        }
    }

    fn key(self) -> String {
        let name = match self {
            ShareKind::Stores => "stores",
            ShareKind::Graphs => "graphs",
        };
        format!("{}/{name}", keys::SHARES)
    }

    /// The names of what is counted, and of what the bytes are those of.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            ShareKind::Stores => ("stores", "bytes of records of stores"),
            ShareKind::Graphs => ("live graphs", "bytes of types of live graphs"),
        }
    }

    fn help(self) -> &'static str {
        match self {
            ShareKind::Stores => {
                "nothing was changed; drop stores or versions that nobody needs (`kith store drop`, `kith store alter --retain`)"
            }
            ShareKind::Graphs => {
                "nothing was changed; drop graphs that nobody needs (`kith graph drop`), or declare fewer types and fields"
            }
        }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// The reason why the shares are not known.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the variants are named for their causes")]
pub enum SharesError {
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl Shares {
    /// Reads what all subjects have.
    ///
    /// # Errors
    /// [`SharesError`].
    pub async fn read(metadata: &dyn MetadataStore, shared: ShareKind) -> Result<Self, SharesError> {
        // The revision is read first: anything that is added after this changes the key, so a commit on condition of
        // this revision does not miss it.
        let key = shared.key();
        let revision = metadata.read(&key).await?.get(&key).map_or(0, |entry| entry.revision);
        let prefix = match shared {
            ShareKind::Stores => keys::STORES,
            ShareKind::Graphs => keys::LIVE_GRAPHS,
        };
        let mut of: BTreeMap<String, Amount> = BTreeMap::new();
        for entry in metadata.read(prefix).await?.entries {
            let (owner, bytes) = match shared {
                ShareKind::Stores => {
                    (StoreDocument::decode(&entry.value)?.charged_to, entry.value.len() as u64)
                }
                ShareKind::Graphs => {
                    let graph = LiveGraphDocument::decode(&entry.value)?;
                    (graph.charged_to, graph.types.bytes)
                }
            };
            *of.entry(owner).or_default() += Amount { count: 1, bytes };
        }
        Ok(Self { shared, of, revision })
    }

    /// Checks that `owner`, the subject to whom a thing is charged, may have `after` instead of `before`. What takes no more than
    /// before is always allowed.
    ///
    /// # Errors
    /// `out_of_range` if the subject, or all together, would have too much.
    pub fn check(&self, owner: &str, before: Amount, after: Amount) -> Result<(), Status> {
        let (of_one, of_all) = self.shared.bounds();
        let own = self.of.get(owner).copied().unwrap_or_default();
        let mut all = Amount::default();
        self.of.values().for_each(|amount| all += *amount);
        let (counted, bytes) = self.shared.names();
        type Part = fn(&Amount) -> u64;
        let each: [(&str, Part); 2] = [(counted, |it| it.count), (bytes, |it| it.bytes)];
        for (what, of) in each {
            if of(&after) <= of(&before) {
                continue;
            }
            let with = |amount: &Amount| of(amount).saturating_sub(of(&before)).saturating_add(of(&after));
            let (own, all, max) = (with(&own), with(&all), of(&of_all));
            if !owner.is_empty() && of(&of_one) < own {
                let max = of(&of_one);
                let message = format!("{owner:?} would have {own} {what}; one subject may have {max}");
                let help = format!("{}; what an administrator creates has no such bound", self.shared.help());
                return Err(kith_wire::status(ErrorCode::OutOfRange, message, help));
            }
            if max < all {
                let message = format!("the cluster would have {all} {what}, and may have {max}");
                return Err(kith_wire::status(ErrorCode::OutOfRange, message, self.shared.help()));
            }
        }
        Ok(())
    }

    /// The condition that nothing was added since the shares were read.
    pub fn condition(&self) -> Condition {
        Condition { key: self.shared.key(), revision: self.revision }
    }

    /// The write by which others learn that something is added.
    pub fn write(&self) -> Write {
        Write::put(self.shared.key(), Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shares(shared: ShareKind, of: &[(&str, u64, u64)]) -> Shares {
        let of = of.iter().map(|&(name, count, bytes)| (name.to_owned(), Amount { count, bytes }));
        Shares { shared, of: of.collect(), revision: 0 }
    }

    fn refusal(shares: &Shares, owner: &str, (before, after): (Amount, Amount)) -> Option<String> {
        let refused = shares.check(owner, before, after).err()?;
        assert_eq!(kith_wire::code_of(&refused), ErrorCode::OutOfRange);
        assert!(!kith_wire::detail_of(&refused).help.is_empty());
        Some(refused.message().to_owned())
    }

    #[test]
    fn a_subject_with_rights_for_some_stores_may_have_only_so_much() {
        let full = shares(ShareKind::Graphs, &[("ada", 3, 4 * MIB - 10), ("bob", 64, 100)]);
        let new = |bytes| (Amount::default(), Amount { count: 1, bytes });
        assert_eq!(refusal(&full, "ada", new(10)), None);
        let refused = refusal(&full, "ada", new(11)).unwrap();
        assert!(refused.contains("\"ada\" would have 4194305 bytes of types of live graphs"), "{refused}");
        assert!(refused.contains("may have 4194304"), "{refused}");
        for standing in [Trust::Administrator, Trust::Claimed] {
            assert_eq!(refusal(&full, &charged_to("ada", standing), new(MIB)), None);
        }
        assert_eq!(charged_to("ada", Trust::Proven), "ada");
        let refused = refusal(&full, "bob", new(1)).unwrap();
        assert!(refused.contains("would have 65 live graphs; one subject may have 64"), "{refused}");
        assert_eq!(refusal(&full, "carl", new(MIB)), None, "others are not affected");
        // Types may shrink, and may grow in the place of those before.
        let grown = |before, after| (Amount { count: 1, bytes: before }, Amount { count: 1, bytes: after });
        assert_eq!(refusal(&full, "bob", grown(100, 4 * MIB)), None);
        assert!(refusal(&full, "bob", grown(100, 4 * MIB + 1)).is_some());
        let over = shares(ShareKind::Stores, &[("ada", 5_000, 20 * MIB)]);
        assert_eq!(refusal(&over, "ada", grown(100, 100)), None);
    }

    #[test]
    fn there_is_a_bound_in_all_that_holds_for_everybody() {
        let names: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
        let of: Vec<_> = names.iter().map(|name| (name.as_str(), 1, 4 * MIB)).collect();
        let full = shares(ShareKind::Graphs, &of);
        let new = (Amount::default(), Amount { count: 1, bytes: 1 });
        for owner in ["new", ""] {
            let refused = refusal(&full, owner, new).unwrap();
            assert!(refused.contains("the cluster would have 33554433 bytes of types"), "{refused}");
        }
        let many = shares(ShareKind::Stores, &[("ada", 8_192, 0)]);
        assert!(refusal(&many, "", new).unwrap().contains("8193 stores"));
    }
}
