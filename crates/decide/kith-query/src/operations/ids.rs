//! Ids in JSON: numbers, which a serializer can tell from other numbers.

use serde::{Serialize, Serializer};

/// An id that is printed.
#[derive(Clone, Copy, Debug)]
pub struct Id(pub u64);

impl Id {
    /// The name under which it serializes as a newtype, so that a serializer can write ids in another form than other numbers.
    pub const NAME: &'static str = "kith_query::Id";
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(Self::NAME, &self.0)
    }
}

/// Writes an id.
///
/// # Errors
/// Those of the serializer.
pub fn one<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    Id(*id).serialize(serializer)
}

/// Writes an id, if there is one.
///
/// # Errors
/// Those of the serializer.
pub fn optional<S: Serializer>(id: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    id.map(Id).serialize(serializer)
}

/// Writes a list of ids.
///
/// # Errors
/// Those of the serializer.
pub fn many<S: Serializer>(ids: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().copied().map(Id))
}

/// Writes pairs of an id and a number that belongs to it.
///
/// # Errors
/// Those of the serializer.
pub fn counted<S: Serializer>(pairs: &[(u64, u32)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(pairs.iter().map(|(id, count)| (Id(*id), count)))
}
