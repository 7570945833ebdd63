//! Objects and associations as JSON. Their fields are printed exactly as the node wrote them.

use super::wrong_kind;
use crate::{
    failure::Failure,
    ids::{self, Id},
};
use kith_live::{ListedAssociation, ObjectAnswer};
use kith_query::AssociationsAnswer;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// An object.
#[derive(Clone, Debug, Serialize)]
pub struct Object {
    #[serde(serialize_with = "ids::one")]
    pub id: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub version: u64,
    pub data: Box<RawValue>,
}

/// Associations of one list, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Associations {
    pub out: Vec<Association>,
    /// Whether more associations follow; omitted from answers that have no pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
}

/// An association: a JSON list of its other end and its time, followed by its fields and its version if they were requested.
#[derive(Clone, Debug)]
pub struct Association {
    pub id2: u64,
    pub time: u64,
    pub data: Option<Box<RawValue>>,
    pub version: Option<u64>,
}

impl Serialize for Association {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id2, time, data, version } = self;
        let id2 = Id(*id2);
        match (data, version) {
            (None, None) => (id2, time).serialize(serializer),
            (Some(data), None) => (id2, time, data).serialize(serializer),
            (None, Some(version)) => (id2, time, version).serialize(serializer),
            (Some(data), Some(version)) => (id2, time, data, version).serialize(serializer),
        }
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        let words = |object: &Self| (object.id, object.kind.clone(), object.version);
        words(self) == words(other) && self.data.get() == other.data.get()
    }
}

impl PartialEq for Association {
    fn eq(&self, other: &Self) -> bool {
        let text = |association: &Self| association.data.as_ref().map(|data| data.get().to_owned());
        let numbers = |association: &Self| (association.id2, association.time, association.version);
        numbers(self) == numbers(other) && text(self) == text(other)
    }
}

impl Object {
    /// # Errors
    /// Returns `internal` if its fields are not JSON.
    pub(super) fn of(object: ObjectAnswer) -> Result<Self, Failure> {
        let ObjectAnswer { id, kind, version, data } = object;
        Ok(Self { id, kind, version, data: fields(data)? })
    }
}

impl Associations {
    /// # Errors
    /// Returns `internal` if fields are not JSON.
    pub(super) fn of(answer: AssociationsAnswer) -> Result<Self, Failure> {
        let association = |ListedAssociation { id2, time, data, version }| {
            Ok(Association { id2, time, data: data.map(fields).transpose()?, version })
        };
        let out: Result<_, Failure> = answer.out.into_iter().map(association).collect();
        Ok(Self { out: out?, more: answer.more })
    }
}

fn fields(text: String) -> Result<Box<RawValue>, Failure> {
    RawValue::from_string(text).map_err(|error| wrong_kind(&format!("fields that are not JSON: {error}")))
}
