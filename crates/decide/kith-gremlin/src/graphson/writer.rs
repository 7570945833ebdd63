//! Writes values as JSON.

use super::DEPTH_MAX;
use crate::{
    assemble,
    bytecode::{Bytecode, Instruction},
    error::{GremlinError, Result},
    predicate::Predicate,
    value::{Map, Value, duration, numbers, time},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use kith_types::ErrorCode;
use serde_json::{Value as Json, json};

/// The JSON of a value.
///
/// # Errors
///
/// The value nests deeper than [`DEPTH_MAX`].
pub fn to_json(value: &Value) -> Result<Json> {
    JsonWriter::default().value(value)
}

/// The JSON of a value in this version.
///
/// # Errors
///
/// The value nests deeper than [`DEPTH_MAX`], or GraphSON 2 cannot express it: a map with two keys of the same text, or bulk sets whose members
/// would take too much memory, because it repeats them.
pub fn to_json_of(version: Version, value: &Value) -> Result<Json> {
    JsonWriter { version, ..JsonWriter::default() }.value(value)
}

/// The text of a value's JSON. Unlike [`to_json_of`], it does not take the memory of the JSON of all members of a collection at
/// once, which is many times that of the text.
///
/// # Errors
///
/// Those of [`to_json_of`].
pub(crate) fn to_text_of(version: Version, value: &Value) -> Result<String> {
    let mut text = String::new();
    JsonWriter { version, ..JsonWriter::default() }.text(value, &mut text)?;
    Ok(text)
}

/// The text of the list of all values of one message. The bounds are for all together.
///
/// # Errors
///
/// Those of [`to_json_of`].
pub(crate) fn all_to_text_of(version: Version, values: &[Value]) -> Result<String> {
    let mut text = String::new();
    JsonWriter { version, ..JsonWriter::default() }.collection_text("g:List", values.iter(), &mut text)?;
    Ok(text)
}

/// The JSON of a value, in which everything that JSON without types expresses exactly has no type.
///
/// # Errors
///
/// The value nests deeper than [`DEPTH_MAX`].
pub(crate) fn to_json_with_few_types(value: &Value) -> Result<Json> {
    JsonWriter { has_few_types: true, ..JsonWriter::default() }.value(value)
}

/// The memory that the repeated members of bulk sets in one message take at most, and the memory of each besides its text. The set itself says
/// only how many there are.
const REPEATED_BYTES_MAX: u64 = 16 << 20;
const REPEATED_BYTES: usize = 128;

/// A version of GraphSON with types. They differ in collections: in the older one, these are plain JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants have the numbers of the versions")]
pub enum Version {
    Two,
    #[default]
    Three,
}

/// Writes one value.
#[derive(Debug, Default)]
pub(super) struct JsonWriter {
    depth: usize,
    version: Version,
    /// How many bytes the repeated members of bulk sets take so far.
    repeated_bytes: u64,
    /// Whether values have no type if [`read_value`](super::read_value) reads them as the same values without it.
    has_few_types: bool,
}

impl JsonWriter {
    pub(super) fn value(&mut self, value: &Value) -> Result<Json> {
        if self.depth == DEPTH_MAX {
            return Err(GremlinError::bad(format!("a value nests deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let written = match self.without_type(value) {
            Some(written) => written,
            None => self.of_value(value),
        };
        self.depth -= 1;
        written
    }

    fn text(&mut self, value: &Value, text: &mut String) -> Result<()> {
        let is_three = self.version == Version::Three;
        if self.depth == DEPTH_MAX {
            return Err(GremlinError::bad(format!("a value nests deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let written = match value {
            Value::List(values) => self.collection_text("g:List", values.iter(), text),
            Value::Set(values) => self.collection_text("g:Set", values.iter(), text),
            Value::Map(entries) if is_three => {
                let items = entries.iter().flat_map(|(key, value)| [key, value]);
                self.collection_text("g:Map", items, text)
            }
            value => {
                self.depth -= 1;
                let written = self.value(value).map(|json| text.push_str(&json.to_string()));
                self.depth += 1;
                written
            }
        };
        self.depth -= 1;
        written
    }

    fn collection_text<'v>(
        &mut self,
        type_name: &str,
        values: impl Iterator<Item = &'v Value>,
        text: &mut String,
    ) -> Result<()> {
        let is_three = self.version == Version::Three;
        if is_three {
            text.push_str(&format!("{{\"@type\":\"{type_name}\",\"@value\":"));
        }
        text.push('[');
        for (at, value) in values.enumerate() {
            if 0 < at {
                text.push(',');
            }
            self.text(value, text)?;
        }
        text.push_str(if is_three { "]}" } else { "]" });
        Ok(())
    }

    /// The JSON of a value that needs no type; `None` if it needs one.
    fn without_type(&mut self, value: &Value) -> Option<Result<Json>> {
        if !self.has_few_types {
            return None;
        }
        Some(match value {
            Value::Int(number) => Ok(json!(number)),
            Value::Long(number) if i32::try_from(*number).is_err() => Ok(json!(number)),
            Value::Double(number) if number.is_finite() => Ok(json!(number)),
            Value::List(values) => self.values(values.iter()).map(Json::Array),
            Value::Map(entries) if is_object(entries) => {
                let fields =
                    entries.iter().filter_map(|(key, value)| Some((key.as_text()?.to_owned(), value)));
                self.object(fields)
            }
            _ => return None,
        })
    }

    fn of_value(&mut self, value: &Value) -> Result<Json> {
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(value) => json!(value),
            Value::Byte(value) => typed("gx:Byte", *value),
            Value::Short(value) => typed("gx:Int16", *value),
            Value::Int(value) => typed("g:Int32", *value),
            Value::Long(value) => typed("g:Int64", *value),
            // The shortest digits of the `Float`, not those of the same number as a `Double`.
            Value::Float(value) => real("g:Float", value.to_string().parse().unwrap_or(f64::NAN)),
            Value::Double(value) => real("g:Double", *value),
            Value::BigInteger(value) => typed("gx:BigInteger", value.to_string()),
            Value::BigDecimal(value) => typed("gx:BigDecimal", numbers::decimal_text(value)),
            Value::Char(value) => typed("gx:Char", value.to_string()),
            Value::String(text) => json!(&**text),
            Value::Class(name) => typed("g:Class", &**name),
            Value::Uuid(id) => typed("g:UUID", id.to_string()),
            Value::DateTime(time) => typed("gx:OffsetDateTime", time::date_time_text(time)),
            Value::Duration { seconds, nanos } => typed("gx:Duration", duration::text(*seconds, *nanos)),
            Value::Binary(bytes) => typed("gx:ByteBuffer", STANDARD.encode(bytes)),
            Value::List(values) => self.collection_of("g:List", values.iter())?,
            Value::Set(values) => self.collection_of("g:Set", values.iter())?,
            Value::Map(entries) => self.map(entries)?,
            Value::Entry(entry) => self.map(&Map::from_iter([(entry.0.clone(), entry.1.clone())]))?,
            Value::BulkSet(values) if self.version == Version::Two => Json::Array(self.repeated(values)?),
            Value::BulkSet(values) => {
                let mut items = Vec::with_capacity(2 * values.len());
                for (value, bulk) in &**values {
                    items.extend([self.value(value)?, typed("g:Int64", *bulk)]);
                }
                typed("g:BulkSet", items)
            }
            Value::Symbol(symbol) => typed(&format!("g:{}", symbol.type_name()), symbol.name()),
            Value::Predicate(predicate) => self.predicate(predicate)?,
            Value::Traversal(bytecode) => self.bytecode(bytecode)?,
            Value::CardinalityValue { cardinality, value } => {
                self.bytecode(&assemble::cardinality_value(*cardinality, value))?
            }
            Value::Traverser { bulk, value } => {
                typed("g:Traverser", json!({"bulk": typed("g:Int64", *bulk), "value": self.value(value)?}))
            }
            Value::Strategy { name, configuration } => {
                let conf = self.object(configuration.iter().map(|(key, value)| (key.to_string(), value)))?;
                typed(&format!("g:{name}"), json!({"fqcn": &**name, "conf": conf}))
            }
            Value::Lambda { language, script } => {
                typed("g:Lambda", json!({"language": &**language, "script": &**script, "arguments": -1}))
            }
            Value::Vertex(vertex) => self.vertex(vertex)?,
            Value::Edge(edge) => self.edge(edge)?,
            Value::VertexProperty(property) => self.vertex_property(property)?,
            Value::Property(property) => self.property(property)?,
            Value::Path(path) => self.path(path)?,
            Value::Metrics(metrics) => self.metrics(metrics)?,
            Value::TraversalMetrics(metrics) => self.traversal_metrics(metrics)?,
        })
    }

    pub(super) fn values<'a>(&mut self, values: impl Iterator<Item = &'a Value>) -> Result<Vec<Json>> {
        values.map(|value| self.value(value)).collect()
    }

    /// A collection of this type, which is an array without a type in GraphSON 2.
    pub(super) fn collection(&self, type_name: &str, items: Vec<Json>) -> Json {
        match self.version {
            Version::Two => Json::Array(items),
            Version::Three => typed(type_name, items),
        }
    }

    fn collection_of<'v>(
        &mut self,
        type_name: &str,
        values: impl Iterator<Item = &'v Value>,
    ) -> Result<Json> {
        let items = self.values(values)?;
        Ok(self.collection(type_name, items))
    }

    /// A map whose keys are texts.
    pub(super) fn named<'n>(&self, fields: impl IntoIterator<Item = (&'n str, Json)>) -> Json {
        match self.version {
            Version::Two => fields.into_iter().collect(),
            Version::Three => {
                let items = fields.into_iter().flat_map(|(name, value)| [json!(name), value]);
                typed("g:Map", items.collect::<Vec<_>>())
            }
        }
    }

    /// Each value as often as it occurs.
    fn repeated(&mut self, values: &[(Value, i64)]) -> Result<Vec<Json>> {
        let mut items = Vec::new();
        for (value, bulk) in values {
            let item = self.value(value)?;
            let count = u64::try_from(*bulk).unwrap_or(0);
            let bytes = (item.to_string().len() + REPEATED_BYTES) as u64;
            self.repeated_bytes = self.repeated_bytes.saturating_add(bytes.saturating_mul(count));
            if REPEATED_BYTES_MAX < self.repeated_bytes {
                let message = "GraphSON 2 repeats the members of bulk sets, which would take too much memory; \
                               ask for less at once, or use GraphSON 3 or GraphBinary";
                return Err(GremlinError::new(ErrorCode::TooLarge, message));
            }
            items.extend(std::iter::repeat_n(item, usize::try_from(count).unwrap_or(0)));
        }
        Ok(items)
    }

    /// A map as GraphSON 2 has it: an object, whose keys are texts.
    fn object_of_texts(&mut self, entries: &Map) -> Result<Json> {
        let mut fields = serde_json::Map::with_capacity(entries.len());
        for (key, value) in entries {
            let key = key_text(key);
            let value = self.value(value)?;
            if let Some((key, _)) = fields.get_key_value(&key) {
                return Err(GremlinError::bad(format!(
                    "keys of maps are texts in GraphSON 2, and a map has two keys {key:.100?}; use GraphSON 3 or GraphBinary"
                )));
            }
            fields.insert(key, value);
        }
        Ok(Json::Object(fields))
    }

    pub(super) fn map(&mut self, entries: &Map) -> Result<Json> {
        if self.version == Version::Two {
            return self.object_of_texts(entries);
        }
        let mut items = Vec::with_capacity(2 * entries.len());
        for (key, value) in entries {
            items.extend([self.value(key)?, self.value(value)?]);
        }
        Ok(typed("g:Map", items))
    }

    /// An object without a type.
    pub(super) fn object<'a>(&mut self, fields: impl Iterator<Item = (String, &'a Value)>) -> Result<Json> {
        let fields = fields.map(|(name, value)| Ok((name, self.value(value)?)));
        fields.collect::<Result<serde_json::Map<_, _>>>().map(Json::Object)
    }

    fn predicate(&mut self, predicate: &Predicate) -> Result<Json> {
        let type_name = if predicate.is_of_text() { "g:TextP" } else { "g:P" };
        let value = match &predicate.operands[..] {
            [operand] => self.value(operand)?,
            operands => Json::Array(self.values(operands.iter())?),
        };
        Ok(typed(type_name, json!({"predicate": &*predicate.operator, "value": value})))
    }

    fn bytecode(&mut self, bytecode: &Bytecode) -> Result<Json> {
        let mut fields = serde_json::Map::new();
        for (name, instructions) in [("source", &bytecode.sources), ("step", &bytecode.steps)] {
            if !instructions.is_empty() {
                fields.insert(name.to_owned(), self.instructions(instructions)?);
            }
        }
        Ok(typed("g:Bytecode", fields))
    }

    fn instructions(&mut self, instructions: &[Instruction]) -> Result<Json> {
        let mut written = Vec::with_capacity(instructions.len());
        for instruction in instructions {
            let mut items = vec![json!(&*instruction.name)];
            items.extend(self.values(instruction.arguments.iter())?);
            written.push(Json::Array(items));
        }
        Ok(Json::Array(written))
    }
}

/// A value with its type.
pub(super) fn typed(type_name: &str, value: impl Into<Json>) -> Json {
    json!({"@type": type_name, "@value": value.into()})
}

/// A floating-point number with its type. JSON has no numbers for infinity and NaN.
pub(super) fn real(type_name: &str, value: f64) -> Json {
    if value.is_finite() { typed(type_name, value) } else { typed(type_name, numbers::double_text(value)) }
}

/// The text of a key of a map. Elements stand for their ids.
fn key_text(key: &Value) -> String {
    match key {
        Value::Symbol(symbol) => symbol.name().to_owned(),
        Value::Vertex(vertex) => vertex.id.to_string(),
        Value::Edge(edge) => edge.id.to_string(),
        Value::VertexProperty(property) => property.id.to_string(),
        key => key.to_string(),
    }
}

/// Whether a JSON object is read as this map, with the same order of entries: JSON objects here are sorted by key, and a key
/// that begins with `@` may be a type.
fn is_object(entries: &Map) -> bool {
    let mut before = None;
    entries.keys().all(|key| {
        let key = key.as_text();
        key.is_some_and(|text| !text.starts_with('@')) && before.replace(key) < Some(key)
    })
}
