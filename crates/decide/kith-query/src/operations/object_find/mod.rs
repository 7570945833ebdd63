//! The operation `object_find`: the ids of objects of a live graph that have one of some values in a field with an index.

#[cfg(feature = "nodes")]
mod machine;

#[cfg(feature = "testing")]
use super::Example;
use super::{
    fields::{Decoded, Fields, Presentation},
    ids_answer::IdsView,
    page::{AnswerPage, Pages},
    view::WrongAnswer,
};
use crate::{
    GraphAnswer,
    convert::{find_from_wire, find_to_wire},
};
use kith_schema::live::ObjectFind;
use kith_wire::v1::query_request::Operand;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Asks for the ids of objects that have one of the values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "flags", derive(clap::Args))]
#[serde(try_from = "Line", into = "Line")]
pub struct ObjectFindQuery {
    /// The object type
    #[cfg_attr(feature = "flags", arg(long = "type", value_name = "TYPE"))]
    pub kind: String,
    /// A field that has an index
    #[cfg_attr(feature = "flags", arg(long, value_name = "FIELD"))]
    pub field: String,
    /// The value as JSON; a text that is not JSON needs no quotes
    #[cfg_attr(feature = "flags", arg(long = "value", value_name = "VALUE", value_parser = json_or_text, required = true, num_args = 1, action = clap::ArgAction::Set))]
    pub values: Vec<String>,
    /// The most ids of one answer. An option of the line.
    #[cfg_attr(feature = "flags", arg(skip))]
    pub limit: Option<u64>,
    /// The last id of the previous page. An option of the line.
    #[cfg_attr(feature = "flags", arg(skip))]
    pub after: Option<u64>,
}

/// Returns JSON as it is, and any other text as a string of JSON.
#[cfg(feature = "flags")]
fn json_or_text(text: &str) -> Result<String, std::convert::Infallible> {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    Ok(value.to_string())
}

/// The fields of a line: `value` for one value, or `values`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Vec<Value>>,
}

impl TryFrom<Line> for ObjectFindQuery {
    type Error = &'static str;

    fn try_from(line: Line) -> Result<Self, &'static str> {
        let Line { kind, field, value, values } = line;
        let values = match (value, values) {
            (Some(value), None) => vec![value],
            (None, Some(values)) => values,
            (None, None) => return Err("missing field `value` or `values`, and null cannot be looked up"),
            (Some(_), Some(_)) => return Err("give `value` or `values`, not both"),
        };
        let values = values.iter().map(Value::to_string).collect();
        Ok(Self { kind, field, values, limit: None, after: None })
    }
}

impl From<ObjectFindQuery> for Line {
    fn from(query: ObjectFindQuery) -> Self {
        let ObjectFindQuery { kind, field, values, .. } = query;
        // Requests of programs may have values that are not JSON, which nodes refuse.
        let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
        let mut values: Vec<Value> = values.iter().map(value).collect();
        match values.len() {
            1 => Self { kind, field, value: values.pop(), values: None },
            _ => Self { kind, field, value: None, values: Some(values) },
        }
    }
}

impl ObjectFindQuery {
    fn find(&self) -> ObjectFind {
        let Self { kind, field, values, limit, after } = self.clone();
        ObjectFind { kind, field, values, after, limit }
    }
}

impl Fields for ObjectFindQuery {
    fn to_message(&self) -> Operand {
        Operand::Find(find_to_wire(&self.find()))
    }

    fn from_message(operand: Operand) -> Decoded<Self, Operand> {
        match operand {
            Operand::Find(message) => {
                let ObjectFind { kind, field, values, after, limit } = find_from_wire(message);
                Decoded::valid(Self { kind, field, values, limit, after })
            }
            operand => Decoded::Elsewhere(operand),
        }
    }

    fn ids(&self) -> Vec<u64> {
        Vec::new()
    }

    fn id_fields() -> &'static [&'static str] {
        &[]
    }

    #[cfg(feature = "testing")]
    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                r#"{"op":"object_find","graph":"g","type":"user","field":"name","value":"Ada","limit":2,"after":6}"#,
                GraphAnswer::Ids(vec![7, 9]),
                r#"{"ids":[7,9]}"#,
            ),
            Example::new(
                r#"{"op":"object_find","graph":"g","type":"user","field":"born","values":[1815,0.5]}"#,
                GraphAnswer::Ids(vec![]),
                r#"{"ids":[]}"#,
            ),
        ]
    }

    fn pages(&self) -> Pages {
        Pages::Ids
    }

    fn page(&self) -> Option<AnswerPage> {
        Some(AnswerPage::after_id(self.limit, self.after))
    }

    fn set_page(&mut self, page: AnswerPage) {
        (self.limit, self.after) = (page.limit, page.id());
    }

    fn needs_live_graph(&self) -> bool {
        true
    }

    fn wants_ids(&self) -> bool {
        true
    }
}

impl Presentation for ObjectFindQuery {
    type View = IdsView;

    fn view(&self, answer: GraphAnswer) -> Result<IdsView, WrongAnswer> {
        IdsView::of(answer)
    }
}
