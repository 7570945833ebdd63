//! Reads of objects and associations as callers ask for them, and their answers (TAO §3.3, §3.4).

use crate::ListPlace;

/// An object, as a read returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAnswer {
    /// Its id.
    pub id: u64,
    /// The name of its type.
    pub kind: String,
    /// Its version: the position of its last change.
    pub version: u64,
    /// Its fields: a JSON object.
    pub data: String,
}

/// What is read of one association list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationRead {
    /// The name of the type.
    pub kind: String,
    /// Which associations.
    pub select: Select,
    /// Whether their fields are returned too.
    pub with_data: bool,
    /// Whether their versions are returned too.
    pub with_versions: bool,
}

/// Which associations of a list are read. Where a limit is absent or greater than the cap of the type, the cap applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// Those that lead to these objects and whose time lies in a range, in the order of the list.
    Ids {
        /// The objects.
        ids: Vec<u64>,
        /// The latest time.
        high: Option<u64>,
        /// The earliest time.
        low: Option<u64>,
    },
    /// None: only their number.
    Count,
    /// From a place on, newest first.
    Range {
        /// Where to begin.
        start: Start,
        /// The most to return.
        limit: Option<u32>,
    },
    /// Those whose time lies in a range, newest first.
    Times {
        /// The latest time.
        high: Option<u64>,
        /// The earliest time.
        low: Option<u64>,
        /// The most to return.
        limit: Option<u32>,
    },
}

/// Where a range of an association list begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this index; 0 is the newest.
    Index(u64),
    /// After this place, whether or not an association is there.
    After(ListPlace),
}

/// What was read of one association list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssociationAnswer {
    /// The length of the list.
    Count(u64),
    /// Associations in the order of the list.
    List {
        /// The associations.
        out: Vec<ListedAssociation>,
        /// Whether further ones follow that the limit or the cap cut off.
        more: bool,
    },
}

/// An association, as a read returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAssociation {
    /// The object that it leads to.
    pub id2: u64,
    /// Its time.
    pub time: u64,
    /// Its fields: a JSON object, if asked for.
    pub data: Option<String>,
    /// Its version, if asked for: the position of its last change. Both directions of a two-sided association have the same
    /// version, which is a position in the log of the partition of the smaller id.
    pub version: Option<u64>,
}
