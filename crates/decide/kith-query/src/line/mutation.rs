//! Writes to live graphs: the lines of `kith run`, and the arguments of `kith object` and `kith assoc`.

use crate::{
    QueryOptions,
    line::{
        command::{CommandLine, FromCommand},
        error::LineError,
    },
};
use clap::{Args, Subcommand};
use kith_schema::live::{Conditions, Mutation, Write, WriteId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{num::NonZeroU32, time::Duration};

/// The fields of an object or association, as JSON.
type Fields = Map<String, Value>;

/// A write to a live graph.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteLine {
    /// The operation.
    pub operation: WriteOperation,
    /// The graph, and the options that every write has.
    pub options: WriteOptions,
}

/// The operation of a write, with its own fields. Field names are a contract: `docs/live-graph.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteOperation {
    ObjectAdd(ObjectAdd),
    ObjectUpdate(ObjectUpdate),
    ObjectDelete(ObjectDelete),
    AssocAdd(AssocAdd),
    AssocDelete(AssocDelete),
    AssocChangeType(AssocChangeType),
}

/// The writes of `kith object`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum ObjectWrite {
    /// Create an object
    Add(ObjectAdd),
    /// Replace some fields of an object
    Update(ObjectUpdate),
    /// Delete an object; its associations stay
    Delete(ObjectDelete),
}

/// The writes of `kith assoc`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum AssocWrite {
    /// Create or overwrite an association, and its inverse if its type has one
    Add(AssocAdd),
    /// Delete an association, and its inverse if its type has one
    Delete(AssocDelete),
    /// Give an association another type
    ChangeType(AssocChangeType),
}

/// Options of any write to a live graph.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Write options")]
#[serde(deny_unknown_fields)]
pub struct WriteOptions {
    /// The live graph
    #[arg(short, long)]
    pub graph: String,
    /// Write only if the object or association has this version
    #[arg(long, value_name = "VERSION")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<u64>,
    /// Write only if the object or association exists (true), or only if it does not (false)
    #[arg(long, value_name = "BOOL")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_exists: Option<bool>,
    /// A name for the write: repeating it within ten minutes returns the first outcome and writes nothing
    #[arg(long, value_name = "TEXT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_id: Option<String>,
    /// Milliseconds that the write may take [default: the router's]
    #[arg(long, value_name = "MS")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<NonZeroU32>,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectAdd {
    /// The object type
    #[arg(long = "type", value_name = "TYPE")]
    #[serde(rename = "type")]
    kind: String,
    /// Its fields: a JSON object
    #[arg(long, value_name = "JSON", value_parser = fields)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Fields>,
    /// Its id, if it is imported [default: the graph chooses one]
    #[arg(long, value_name = "ID", conflicts_with = "near")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// An object whose partition it is to share
    #[arg(long, value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    near: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectUpdate {
    /// The object
    id: u64,
    /// The fields to replace: a JSON object
    #[arg(long, value_name = "JSON", value_parser = fields)]
    data: Fields,
}

#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectDelete {
    /// The object
    id: u64,
}

/// Fields of a write to one association: which one it is, and the fields of the write itself.
macro_rules! of_association {
    ($type:tt; pub struct $name:ident { $($fields:tt)* }) => {
        #[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The object that the association leaves
            #[arg(long, value_name = "ID")]
            id1: u64,
            #[doc = $type]
            #[arg(long = "type", value_name = "TYPE")]
            #[serde(rename = "type")]
            kind: String,
            /// The object that it leads to
            #[arg(long, value_name = "ID")]
            id2: u64,
            $($fields)*
        }
    };
}

of_association! {
    "The association type";
    pub struct AssocAdd {
        /// Its time, by convention in milliseconds since 1970 [default: now]
        #[arg(long, value_name = "TIME")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<u64>,
        /// Its fields: a JSON object
        #[arg(long, value_name = "JSON", value_parser = fields)]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Fields>,
    }
}

of_association! {
    "The association type";
    pub struct AssocDelete {}
}

of_association! {
    "The association type that it has";
    pub struct AssocChangeType {
        /// The association type that it is to have
        #[arg(long, value_name = "TYPE")]
        new_type: String,
    }
}

/// Parses the fields of an object or association from an argument.
fn fields(text: &str) -> Result<Fields, String> {
    match serde_json::from_str(text) {
        Ok(crate::line::json::Distinct(Value::Object(fields))) => Ok(fields),
        Ok(_) => Err("expected a JSON object, such as '{\"name\":\"Ada\"}'".to_owned()),
        Err(error) => Err(format!("expected a JSON object: {error}")),
    }
}

impl From<ObjectWrite> for WriteOperation {
    fn from(write: ObjectWrite) -> Self {
        match write {
            ObjectWrite::Add(add) => WriteOperation::ObjectAdd(add),
            ObjectWrite::Update(update) => WriteOperation::ObjectUpdate(update),
            ObjectWrite::Delete(delete) => WriteOperation::ObjectDelete(delete),
        }
    }
}

impl From<AssocWrite> for WriteOperation {
    fn from(write: AssocWrite) -> Self {
        match write {
            AssocWrite::Add(add) => WriteOperation::AssocAdd(add),
            AssocWrite::Delete(delete) => WriteOperation::AssocDelete(delete),
            AssocWrite::ChangeType(change) => WriteOperation::AssocChangeType(change),
        }
    }
}

impl WriteOperation {
    /// The fields that hold ids.
    pub(super) const ID_FIELDS: &[&str] = &["id", "id1", "id2", "near"];

    fn mutation(self) -> Mutation {
        let text = |fields: Map<String, Value>| Value::Object(fields).to_string();
        match self {
            WriteOperation::ObjectAdd(ObjectAdd { kind, data, id, near }) => {
                Mutation::AddObject { kind, data: data.map(text), id, near, text_id: None }
            }
            WriteOperation::ObjectUpdate(ObjectUpdate { id, data }) => {
                Mutation::UpdateObject { id, data: text(data) }
            }
            WriteOperation::ObjectDelete(ObjectDelete { id }) => Mutation::DeleteObject { id },
            WriteOperation::AssocAdd(AssocAdd { id1, kind, id2, time, data }) => {
                Mutation::AddAssociation { id1, kind, id2, time, data: data.map(text) }
            }
            WriteOperation::AssocDelete(AssocDelete { id1, kind, id2 }) => {
                Mutation::DeleteAssociation { id1, kind, id2 }
            }
            WriteOperation::AssocChangeType(AssocChangeType { id1, kind, id2, new_type }) => {
                Mutation::ChangeType { id1, kind, id2, new_kind: new_type }
            }
        }
    }

    /// Returns the operation for a mutation; `None` if the data of the mutation are not a JSON object, or the id of a new object is
    /// a text.
    fn of(mutation: &Mutation) -> Option<Self> {
        let object = |data: &str| serde_json::from_str::<Map<String, Value>>(data).ok();
        let optional =
            |data: &Option<String>| data.as_ref().map_or(Some(None), |data| object(data).map(Some));
        Some(match mutation.clone() {
            Mutation::AddObject { text_id: Some(_), .. } => return None,
            Mutation::AddObject { kind, data, id, near, text_id: None } => {
                WriteOperation::ObjectAdd(ObjectAdd { kind, data: optional(&data)?, id, near })
            }
            Mutation::UpdateObject { id, data } => {
                WriteOperation::ObjectUpdate(ObjectUpdate { id, data: object(&data)? })
            }
            Mutation::DeleteObject { id } => WriteOperation::ObjectDelete(ObjectDelete { id }),
            Mutation::AddAssociation { id1, kind, id2, time, data } => {
                WriteOperation::AssocAdd(AssocAdd { id1, kind, id2, time, data: optional(&data)? })
            }
            Mutation::DeleteAssociation { id1, kind, id2 } => {
                WriteOperation::AssocDelete(AssocDelete { id1, kind, id2 })
            }
            Mutation::ChangeType { id1, kind, id2, new_kind } => {
                WriteOperation::AssocChangeType(AssocChangeType { id1, kind, id2, new_type: new_kind })
            }
        })
    }

    /// Returns the ids that the operation names.
    pub fn ids(&self) -> Vec<u64> {
        match self {
            WriteOperation::ObjectAdd(add) => add.id.into_iter().collect(),
            WriteOperation::ObjectUpdate(ObjectUpdate { id, .. })
            | WriteOperation::ObjectDelete(ObjectDelete { id }) => vec![*id],
            WriteOperation::AssocAdd(AssocAdd { id1, id2, .. })
            | WriteOperation::AssocDelete(AssocDelete { id1, id2, .. })
            | WriteOperation::AssocChangeType(AssocChangeType { id1, id2, .. }) => vec![*id1, *id2],
        }
    }
}

impl WriteLine {
    /// Returns the line of a write; `None` if the data of the write are not a JSON object, or the id of a new object is a text.
    pub fn of(graph: &str, write: &Write, options: &QueryOptions) -> Option<Self> {
        let operation = WriteOperation::of(&write.mutation)?;
        let millis = |deadline: Duration| NonZeroU32::new(u32::try_from(deadline.as_millis()).ok()?);
        let options = WriteOptions {
            graph: graph.to_owned(),
            if_version: write.conditions.if_version,
            if_exists: write.conditions.if_exists,
            write_id: write.write_id.as_ref().map(ToString::to_string),
            deadline_ms: options.deadline.and_then(millis),
        };
        Some(Self { operation, options })
    }

    /// Converts the line to a [`Write`].
    ///
    /// # Errors
    /// Returns `bad_request` if the write id is not valid.
    pub fn write(&self) -> Result<Write, LineError> {
        let write_id = self.options.write_id.as_deref().map(str::parse::<WriteId>).transpose();
        let write_id =
            write_id.map_err(|error| LineError::bad_request(format!("field `write_id`: {error}")))?;
        let WriteOptions { if_version, if_exists, .. } = self.options;
        Ok(Write {
            mutation: self.operation.clone().mutation(),
            conditions: Conditions { if_version, if_exists },
            write_id,
        })
    }

    /// Converts the options to [`QueryOptions`].
    pub fn query_options(&self) -> QueryOptions {
        let deadline = self.options.deadline_ms.map(|millis| Duration::from_millis(millis.get().into()));
        QueryOptions { deadline, ..QueryOptions::default() }
    }
}

impl WriteOptions {
    /// The fields that hold versions, which may be as large as ids.
    pub(super) const ID_FIELDS: &[&str] = &["if_version"];
}

/// Writes as subcommands, each with the options of every write.
pub type WriteCommand<W> = CommandLine<W, WriteLine>;

impl<W: Into<WriteOperation>> FromCommand<W> for WriteLine {
    type Options = WriteOptions;

    fn from_command(write: W, options: WriteOptions) -> Self {
        Self { operation: write.into(), options }
    }
}
