//! The changes at the positions of a log, as replicas apply them to their caches and to the lists for graph queries.

use crate::{Association, ListKey, Object, TypeId};

/// Everything that changed at one position of a log. A change without effects takes up a position, but changes no object and
/// no association.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// The effects, in order. No object and no association occurs twice.
    pub effects: Vec<Effect>,
}

impl Change {
    /// Returns the greatest number of a type in the change; 0 if the change names no type.
    pub fn last_type(&self) -> TypeId {
        let kind = |effect: &Effect| match effect {
            Effect::Object(object) => object.kind,
            Effect::Association { list, .. } | Effect::NoAssociation { list, .. } => list.kind,
            Effect::LargeObject(_) | Effect::NoObject(_) => TypeId::default(),
        };
        self.effects.iter().map(kind).max().unwrap_or_default()
    }
}

/// One object or association that changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// An object was written.
    Object(Object),
    /// An object was written whose record has more than [`CHANGE_OBJECT_BYTES_MAX`] bytes. Replicas read it from the
    /// database.
    LargeObject(u64),
    /// An object was deleted.
    NoObject(u64),
    /// An association was written.
    Association {
        /// The list of the association.
        list: ListKey,
        /// The new state of the association.
        now: Association,
        /// The time that the association had before; `None` if it did not exist.
        was: Option<u64>,
        /// The length of the list after the change.
        count: u64,
    },
    /// An association was deleted. It existed before.
    NoAssociation {
        /// The list of the association.
        list: ListKey,
        /// The object that the association led to.
        id2: u64,
        /// The time that the association had before.
        was: u64,
        /// The length of the list after the change.
        count: u64,
    },
}

/// Change records do not contain objects whose record has more bytes than this.
pub const CHANGE_OBJECT_BYTES_MAX: usize = 4 << 10;
