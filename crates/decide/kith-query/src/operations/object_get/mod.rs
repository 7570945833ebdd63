//! The operation `object_get`: objects of a live graph by their ids (TAO, `obj_get`).

mod answer;
#[cfg(feature = "nodes")]
mod machine;

pub use answer::ObjectView;

#[cfg(feature = "testing")]
use super::Example;
use super::fields::{Decoded, Fields};
use kith_wire::v1::{self, query_request::Operand};
use serde::{Deserialize, Serialize};

/// Asks for objects by their ids, in any order; repeats are allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(try_from = "Line", into = "Line")]
pub struct ObjectGetQuery {
    /// The objects
    #[cfg_attr(feature = "flags", arg(required = true, value_name = "ID"))]
    pub ids: Vec<u64>,
    /// Whether a single object was requested: `ids` has one id, and the answer is one object.
    #[cfg_attr(feature = "flags", arg(skip))]
    pub is_single: bool,
}

impl ObjectGetQuery {
    /// Asks for one object.
    pub fn one(id: u64) -> Self {
        Self { ids: vec![id], is_single: true }
    }

    /// Asks for a list of objects.
    pub fn many(ids: Vec<u64>) -> Self {
        Self { ids, is_single: false }
    }
}

/// The fields of a line: `id` for one object, or `ids`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ids: Option<Vec<u64>>,
}

impl TryFrom<Line> for ObjectGetQuery {
    type Error = &'static str;

    fn try_from(line: Line) -> Result<Self, &'static str> {
        match line {
            Line { id: Some(id), ids: None } => Ok(Self::one(id)),
            Line { id: None, ids: Some(ids) } => Ok(Self::many(ids)),
            Line { id: None, ids: None } => Err("missing field `id` or `ids`"),
            Line { id: Some(_), ids: Some(_) } => Err("give `id` or `ids`, not both"),
        }
    }
}

impl From<ObjectGetQuery> for Line {
    fn from(query: ObjectGetQuery) -> Self {
        match (query.is_single, query.ids.as_slice()) {
            (true, &[id]) => Line { id: Some(id), ids: None },
            _ => Line { id: None, ids: Some(query.ids) },
        }
    }
}

impl Fields for ObjectGetQuery {
    fn to_message(&self) -> Operand {
        Operand::Objects(v1::ObjectsOperand { ids: self.ids.clone(), is_single: self.is_single })
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Objects(v1::ObjectsOperand { ids, is_single }) => {
                Decoded::valid(Self { ids, is_single })
            }
            operand => Decoded::Elsewhere(operand),
        }
    }

    fn ids(&self) -> Vec<u64> {
        self.ids.clone()
    }

    fn id_fields() -> &'static [&'static str] {
        &["id", "ids"]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        let (kind, data) = ("user".to_owned(), r#"{"name":"Ada"}"#.to_owned());
        let object = kith_schema::live::ObjectAnswer { id: 5, kind, version: 4, data, text_id: None };
        vec![
            Example::new(
                r#"{"op":"object_get","graph":"g","id":5}"#,
                crate::GraphAnswer::Object(Some(object.clone())),
                r#"{"object":{"id":5,"type":"user","version":4,"data":{"name":"Ada"}}}"#,
            ),
            Example::new(
                r#"{"op":"object_get","graph":"g","ids":[5,6]}"#,
                crate::GraphAnswer::Objects(vec![Some(object), None]),
                r#"{"objects":[{"id":5,"type":"user","version":4,"data":{"name":"Ada"}},null]}"#,
            ),
        ]
    }

    fn needs_live_graph(&self) -> bool {
        true
    }
}
