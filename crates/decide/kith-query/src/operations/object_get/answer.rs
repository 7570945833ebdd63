//! The answers of `object_get`: as messages, and as they are printed. In JSON, fields of objects are exactly as the node
//! wrote them.

use super::ObjectGetQuery;
use crate::{
    GraphAnswer,
    convert::{object_from_wire, object_to_wire, objects_from_wire, objects_to_wire},
    operations::{
        fields::{AnswerKind, Decoded, ID_BYTES, Presentation},
        ids,
        view::{Block, Cell, Column, Json, PrintedAnswer, WrongAnswer},
    },
};
use kith_schema::live::ObjectAnswer;
use kith_wire::v1::query_reply::Answer;
use serde::Serialize;

impl AnswerKind for Option<ObjectAnswer> {
    fn to_message(&self) -> Answer {
        Answer::Object(object_to_wire(self.as_ref()))
    }

    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, |object| object.data.len())
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Object(object) => Decoded::valid(object_from_wire(object)),
            message => Decoded::Elsewhere(message),
        }
    }
}

impl AnswerKind for Vec<Option<ObjectAnswer>> {
    fn to_message(&self) -> Answer {
        Answer::Objects(objects_to_wire(self))
    }

    fn bytes(&self) -> usize {
        self.iter().flatten().map(|object| 2 * ID_BYTES + object.data.len()).sum()
    }

    fn from_message(message: Answer, _: bool) -> Decoded<Self, Answer> {
        match message {
            Answer::Objects(objects) => Decoded::valid(objects_from_wire(objects)),
            message => Decoded::Elsewhere(message),
        }
    }
}

impl Presentation for ObjectGetQuery {
    type View = ObjectsView;

    fn view(&self, answer: GraphAnswer) -> Result<ObjectsView, WrongAnswer> {
        match answer {
            GraphAnswer::Object(object) => {
                let object = object.map(ObjectView::of).transpose()?;
                Ok(ObjectsView::One { object, ids: self.ids.clone() })
            }
            GraphAnswer::Objects(objects) => {
                let object = |object: Option<ObjectAnswer>| object.map(ObjectView::of).transpose();
                let objects = objects.into_iter().map(object).collect::<Result<_, _>>()?;
                Ok(ObjectsView::Many { objects, ids: self.ids.clone() })
            }
            answer => Err(WrongAnswer::kind(&answer)),
        }
    }
}

/// Objects, or one of them, with the ids that were requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "fields are named as in the JSON, which `docs/queries.md` describes")]
pub enum ObjectsView {
    One {
        object: Option<ObjectView>,
        #[serde(skip)]
        ids: Vec<u64>,
    },
    Many {
        objects: Vec<Option<ObjectView>>,
        #[serde(skip)]
        ids: Vec<u64>,
    },
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "fields are named as in the JSON, which `docs/queries.md` describes")]
pub struct ObjectView {
    #[serde(serialize_with = "ids::one")]
    pub id: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub version: u64,
    pub data: Json,
}

impl ObjectView {
    fn of(object: ObjectAnswer) -> Result<Self, WrongAnswer> {
        let ObjectAnswer { id, kind, version, data, text_id: _ } = object;
        Ok(Self { id, kind, version, data: Json::of(data)? })
    }
}

impl PrintedAnswer for ObjectsView {
    fn text(&self) -> Vec<Block> {
        let (ids, objects) = match self {
            ObjectsView::One { object, ids } => (ids, std::slice::from_ref(object)),
            ObjectsView::Many { objects, ids } => (ids, objects.as_slice()),
        };
        let (mut rows, mut absent) = (Vec::new(), Vec::new());
        for (id, object) in ids.iter().zip(objects) {
            match object {
                Some(ObjectView { kind, version, data, .. }) => {
                    let fields =
                        Cell::Fields { is_object: true, kind: kind.clone(), json: data.text().to_owned() };
                    rows.push(vec![Cell::text(id), Cell::text(kind), Cell::text(version), fields]);
                }
                None => absent.push(Block::Line(format!("there is no object {id}"))),
            }
        }
        let columns =
            vec![Column::right("id"), Column::left("type"), Column::right("version"), Column::left("data")];
        let found = (!rows.is_empty()).then_some(Block::Table { columns, rows });
        found.into_iter().chain(absent).collect()
    }
}
