//! Reads of objects and associations as callers request them, and the answers (TAO §3.3, §3.4).

use super::TextId;

/// An object, as a read returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAnswer {
    /// The id of the object.
    pub id: u64,
    /// The name of the object's type.
    pub kind: String,
    /// The version of the object: the position of its last change.
    pub version: u64,
    /// The fields of the object, as a JSON object.
    pub data: String,
    /// The id that the object was given, if it is not only the number.
    pub text_id: Option<TextId>,
}

/// A read of the ids of objects that have certain values in a field with an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFind {
    /// The name of the object type.
    pub kind: String,
    /// The name of the field.
    pub field: String,
    /// The values as JSON. An object is found if it has any of them.
    pub values: Vec<String>,
    /// Only objects with ids above this one are found; `None` to find all.
    pub after: Option<u64>,
    /// The maximum number of ids to return, the smallest first; `None` for all that an answer may have.
    pub limit: Option<u64>,
}

/// The elements of a live graph that are counted. An edge whose type has an inverse is counted at its beginning, and one of a
/// symmetric type at its smaller id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CountedElements {
    /// The objects of the types with these names; all objects if there are none.
    Objects(Vec<String>),
    /// The associations of the types with these names.
    Associations(Vec<String>),
}

/// A read of one association list. The `id1` of the list is not part of this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationRead {
    /// The name of the association type.
    pub kind: String,
    /// The associations to read.
    pub select: Select,
    /// Whether the answer contains the fields of the associations.
    pub with_data: bool,
    /// Whether the answer contains the versions of the associations.
    pub with_versions: bool,
}

/// Reads of several association lists of each of several objects, for a traversal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssociationsPlan {
    /// The lists.
    pub reads: Vec<AssociationRead>,
    /// The tests that an association must pass. A limit counts those that do.
    pub tests: Vec<ElementTest>,
    /// If given, each range consists of the first associations in this order instead of that of the list, as many as its limit
    /// says. Associations without the field are left out.
    pub top: Option<FieldOrder>,
    /// Whether the times of all associations but the last are 0 in the answer, which makes it smaller.
    pub without_times: bool,
}

impl AssociationsPlan {
    /// Reads of all associations of lists.
    pub fn of(reads: Vec<AssociationRead>) -> Self {
        Self { reads, ..Self::default() }
    }
}

/// A test that an object or an association passes or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementTest {
    /// What is tested. What does not exist does not pass.
    pub part: ElementPart,
    /// A predicate of Gremlin, in GraphBinary.
    pub predicate: Vec<u8>,
}

/// A part of an object or an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementPart {
    /// The name of its type.
    Type,
    /// The field with this name.
    Field(String),
}

/// An order of objects or associations: that of Gremlin, by the values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldOrder {
    /// The name of the field.
    pub field: String,
    /// Whether the greatest value comes first.
    pub descending: bool,
}

/// The fields of objects that a read returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectFields {
    /// None: the objects come with their types and versions only.
    None,
    /// All.
    All,
    /// Those with these names.
    Named(Vec<String>),
}

/// The associations of a list to read. If there is no limit, or if it is greater than the cap of the type, the cap applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// The associations that lead to given objects and whose time lies in a range, in the order of the list.
    Ids {
        /// The ids of the objects.
        ids: Vec<u64>,
        /// The latest time; `None` if there is no bound.
        high: Option<u64>,
        /// The earliest time; `None` if there is no bound.
        low: Option<u64>,
    },
    /// No associations, but only the length of the list.
    Count,
    /// The associations from a given start, newest first.
    Range {
        /// The start of the range.
        start: Start,
        /// The maximum number of associations to return.
        limit: Option<u32>,
    },
    /// The associations whose time lies in a range, newest first.
    Times {
        /// The latest time; `None` if there is no bound.
        high: Option<u64>,
        /// The earliest time; `None` if there is no bound.
        low: Option<u64>,
        /// The maximum number of associations to return.
        limit: Option<u32>,
    },
}

/// The largest cap that an association type can have. It bounds what one read returns.
pub const CAP_MAX: u32 = 100_000;

/// The greatest index at which a range of an association list can begin. A database passes over all associations before it, so
/// the work of one read has a bound.
pub const INDEX_MAX: u64 = 100_000;

/// The start of a range of an association list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this index, which is at most [`INDEX_MAX`]; 0 is the newest.
    Index(u64),
    /// After this place, whether or not an association is there.
    After(ListPlace),
}

/// The answer to a read of one association list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssociationAnswer {
    /// The length of the list.
    Count(u64),
    /// Associations, in the order of the list.
    List {
        /// The associations.
        out: Vec<ListedAssociation>,
        /// Whether the limit or the cap cut off further associations.
        more: bool,
    },
}

/// An association, as a read returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAssociation {
    /// The object that the association leads to.
    pub id2: u64,
    /// The time of the association.
    pub time: u64,
    /// The fields of the association, as a JSON object, if the read asked for them.
    pub data: Option<String>,
    /// The version of the association, if the read asked for it: the position of the last change. Both directions of a
    /// two-sided association have the same version, which is a position in the log of the partition of the smaller id.
    pub version: Option<u64>,
}

/// A place in an association list. Lists are sorted by descending time; among equal times, the smaller id comes first. The
/// order of places is that of lists: a place that comes first is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListPlace {
    /// The time of the association there.
    pub time: u64,
    /// The object that the association leads to.
    pub id2: u64,
}

impl Ord for ListPlace {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.time.cmp(&self.time).then(self.id2.cmp(&other.id2))
    }
}

impl PartialOrd for ListPlace {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_newest_first_and_ties_are_by_ascending_id() {
        let mut places = [(5, 9), (7, 3), (7, 1), (0, 0)].map(|(time, id2)| ListPlace { time, id2 });
        places.sort();
        assert_eq!(places.map(|position| (position.time, position.id2)), [(7, 1), (7, 3), (5, 9), (0, 0)]);
    }
}
