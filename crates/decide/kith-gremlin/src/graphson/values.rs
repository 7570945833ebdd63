//! Reads values with or without types. Collections, elements and traversals are read together here, because each has values
//! as parts.

use super::{Fields, JsonReader, profiles, scalars::ScalarReader};
use crate::{
    assemble,
    bytecode::{Bytecode, Instruction},
    error::Result,
    room::{ELEMENT, ENTRY, GROWING_ENTRY, HEAD},
    value::{Edge, Map, Property, Set, Symbol, Value, Vertex, VertexProperty},
};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The label of a vertex whose label is unknown.
const LABEL_UNKNOWN: &str = "vertex";

/// The set of the labels of one object in a path has at least this many characters.
const LABEL_TEXT_BYTES_MIN: usize = 2;

impl<'a> JsonReader<'a> {
    /// The value of a part of the text.
    pub fn value(&mut self, raw: &'a RawValue) -> Result<Value> {
        self.deeper(raw, |reader| match raw.get().as_bytes().first() {
            Some(b'{') => reader.object(raw),
            Some(b'[') => reader.list(raw).map(|values| Value::List(Arc::new(values))),
            Some(b'"') => reader.string(raw).map(Value::String),
            Some(b't') => Ok(Value::Bool(true)),
            Some(b'f') => Ok(Value::Bool(false)),
            Some(b'n') => Ok(Value::Null),
            _ => ScalarReader(reader).number(raw),
        })
    }

    /// A value with a type, or a map.
    fn object(&mut self, raw: &'a RawValue) -> Result<Value> {
        self.with_fields(raw, |reader, fields| {
            let Some(type_name) = fields.get("@type") else {
                return reader.map_of_fields(&fields.list).map(|map| Value::Map(Arc::new(map)));
            };
            let type_name = reader.plain_string(type_name)?;
            let Some(value) = fields.get("@value") else {
                return Err(reader.error_at(raw, format!("a {type_name} has no @value")));
            };
            reader.typed(&type_name, value)
        })
    }

    /// A map whose keys are the names of fields.
    fn map_of_fields(&mut self, fields: &[(String, &'a RawValue)]) -> Result<Map> {
        let bytes = fields.len() * (ENTRY + HEAD) + fields.iter().map(|(name, _)| name.len()).sum::<usize>();
        self.take_room(HEAD + bytes)?;
        let mut map = Map::with_capacity(fields.len());
        for (name, raw) in fields {
            map.insert(Value::text(&**name), self.value(raw)?);
        }
        Ok(map)
    }

    fn typed(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        self.take_room(HEAD)?;
        match type_name {
            "g:List" => self.list(raw).map(|values| Value::List(Arc::new(values))),
            "g:Set" => {
                let values = self.list(raw)?;
                self.take_room(values.len() * ENTRY)?;
                Ok(Value::Set(Arc::new(values.into_iter().collect::<Set>())))
            }
            "g:Map" => self.map(raw).map(|map| Value::Map(Arc::new(map))),
            "g:BulkSet" => self.bulk_set(raw),
            "g:Vertex" | "g:Edge" | "g:VertexProperty" | "g:Property" | "g:Path" => {
                self.take_room(ELEMENT)?;
                ElementReader(self).element(type_name, raw)
            }
            "g:Metrics" | "g:TraversalMetrics" => {
                let map = self.value(raw)?;
                profiles::profile(type_name, map).map_err(|error| self.located(raw, error))
            }
            "g:Bytecode" | "g:Binding" | "g:P" | "g:TextP" | "g:Lambda" | "g:Traverser" => {
                TraversalReader(self).part_of_traversal(type_name, raw)
            }
            name if name.ends_with("Strategy") => TraversalReader(self).strategy(name, raw),
            name => match name.strip_prefix("g:").and_then(symbol_type) {
                Some(enumeration) => self.symbol(enumeration, raw),
                None => ScalarReader(self).scalar(name, raw),
            },
        }
    }

    fn symbol(&mut self, enumeration: &str, raw: &'a RawValue) -> Result<Value> {
        let name = self.plain_string(raw)?;
        let symbol = Symbol::parse(enumeration, &name);
        symbol
            .map(Value::Symbol)
            .ok_or_else(|| self.error_at(raw, format!("{enumeration} has no value {name:?}")))
    }

    fn bulk_set(&mut self, raw: &'a RawValue) -> Result<Value> {
        let mut values = Vec::new();
        self.each_pair(raw, |reader, value, bulk| {
            reader.grow(&mut values)?;
            let value = reader.value(value)?;
            values.push((value, reader.long(bulk)?));
            Ok(())
        })?;
        Ok(Value::BulkSet(Arc::new(values)))
    }

    /// A map, as an array in which a value follows each key.
    fn map(&mut self, raw: &'a RawValue) -> Result<Map> {
        let mut map = Map::new();
        self.each_pair(raw, |reader, key, value| {
            reader.take_room(GROWING_ENTRY)?;
            let key = reader.value(key)?;
            map.insert(key, reader.value(value)?);
            Ok(())
        })?;
        Ok(map)
    }

    /// The values of an array.
    pub fn list(&mut self, raw: &'a RawValue) -> Result<Vec<Value>> {
        self.take_room(HEAD)?;
        let mut values = Vec::new();
        self.each_item(raw, |reader, item| {
            reader.grow(&mut values)?;
            values.push(reader.value(item)?);
            Ok(())
        })?;
        Ok(values)
    }

    /// A whole number, with or without a type.
    pub fn long(&mut self, raw: &'a RawValue) -> Result<i64> {
        match self.value(raw)? {
            Value::Int(number) => Ok(number.into()),
            Value::Long(number) => Ok(number),
            other => Err(self.error_at(raw, format!("a whole number is expected, not {other}"))),
        }
    }
}

/// The name of an enumeration, if it is one.
fn symbol_type(name: &str) -> Option<&str> {
    Symbol::TYPE_NAMES.contains(&name).then_some(name)
}

/// Reads elements and paths from the text of a reader.
struct ElementReader<'r, 'a>(&'r mut JsonReader<'a>);

impl<'a> ElementReader<'_, 'a> {
    fn element(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        self.0.with_fields(raw, |reader, fields| match type_name {
            "g:Vertex" => ElementReader(reader).vertex(raw, fields),
            "g:Edge" => ElementReader(reader).edge(raw, fields),
            "g:VertexProperty" => ElementReader(reader).vertex_property(raw, fields),
            "g:Property" => {
                let key = reader.string(reader.required(fields, "key", raw)?)?;
                let value = reader.value(reader.required(fields, "value", raw)?)?;
                let element = fields.get("element").map(|element| reader.value(element)).transpose()?;
                let element = element.filter(|element| *element != Value::Null);
                Ok(Value::Property(Arc::new(Property { key, value, element })))
            }
            _ => {
                let labels_raw = reader.required(fields, "labels", raw)?;
                // The sets are copied.
                reader.take_room(ENTRY * labels_raw.get().len() / LABEL_TEXT_BYTES_MIN)?;
                let labels = reader.value(labels_raw)?;
                let objects = reader.value(reader.required(fields, "objects", raw)?)?;
                assemble::path(&labels, objects).map_err(|error| reader.located(raw, error))
            }
        })
    }

    fn vertex(&mut self, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Value> {
        let id = self.0.value(self.0.required(fields, "id", raw)?)?;
        let label = self.label(fields, "label", LABEL_UNKNOWN)?;
        let mut properties = fields.get("properties").map(|_| Vec::new());
        for (_, several) in self.optional_fields(fields, "properties")? {
            for value in self.0.list(several)? {
                let property =
                    assemble::vertex_property(value).map_err(|error| self.0.located(several, error))?;
                properties.get_or_insert_default().push(property);
            }
        }
        Ok(Value::Vertex(Arc::new(Vertex { properties, ..Vertex::reference(id, label) })))
    }

    fn edge(&mut self, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Value> {
        let id = self.0.value(self.0.required(fields, "id", raw)?)?;
        let label = self.label(fields, "label", "edge")?;
        let out_id = self.0.value(self.0.required(fields, "outV", raw)?)?;
        let out_vertex = Vertex::reference(out_id, self.label(fields, "outVLabel", LABEL_UNKNOWN)?);
        let in_id = self.0.value(self.0.required(fields, "inV", raw)?)?;
        let in_vertex = Vertex::reference(in_id, self.label(fields, "inVLabel", LABEL_UNKNOWN)?);
        let mut properties = fields.get("properties").map(|_| Vec::new());
        for (_, value) in self.optional_fields(fields, "properties")? {
            let property =
                assemble::property(self.0.value(value)?).map_err(|error| self.0.located(value, error))?;
            properties.get_or_insert_default().push(property);
        }
        let (out_vertex, in_vertex) = (Arc::new(out_vertex), Arc::new(in_vertex));
        Ok(Value::Edge(Arc::new(Edge { id, label, out_vertex, in_vertex, properties })))
    }

    fn vertex_property(&mut self, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Value> {
        let id = self.0.value(self.0.required(fields, "id", raw)?)?;
        let key = self.0.string(self.0.required(fields, "label", raw)?)?;
        let value = self.0.value(self.0.required(fields, "value", raw)?)?;
        let vertex = fields.get("vertex").map(|id| self.0.value(id)).transpose()?;
        let vertex = vertex.map(|id| Arc::new(Vertex::reference(id, LABEL_UNKNOWN)));
        let mut properties = Vec::new();
        for (key, value) in self.optional_fields(fields, "properties")? {
            let value = self.0.value(value)?;
            self.0.take_room(ELEMENT)?;
            properties.push(Arc::new(Property { key: key.into(), value, element: None }));
        }
        Ok(Value::VertexProperty(Arc::new(VertexProperty { id, key, value, vertex, properties })))
    }

    fn label(&mut self, fields: &Fields<'a>, name: &str, unknown: &str) -> Result<Arc<str>> {
        fields.get(name).map_or_else(|| Ok(unknown.into()), |label| self.0.string(label))
    }

    /// The fields of an object that is itself a field; none if it is absent.
    fn optional_fields(&mut self, fields: &Fields<'a>, name: &str) -> Result<Vec<(String, &'a RawValue)>> {
        fields.get(name).map_or_else(|| Ok(Vec::new()), |raw| Ok(self.0.fields(raw)?.list))
    }
}

/// Reads traversals and their parts from the text of a reader.
struct TraversalReader<'r, 'a>(&'r mut JsonReader<'a>);

impl<'a> TraversalReader<'_, 'a> {
    fn part_of_traversal(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        self.0.take_room(2 * HEAD)?;
        self.0.with_fields(raw, |reader, fields| match type_name {
            "g:Bytecode" => {
                let sources = TraversalReader(reader).instructions(fields, "source")?;
                let steps = TraversalReader(reader).instructions(fields, "step")?;
                Ok(assemble::traversal(Bytecode { sources, steps }))
            }
            "g:Binding" => reader.value(reader.required(fields, "value", raw)?),
            "g:Lambda" => {
                let script = reader.string(reader.required(fields, "script", raw)?)?;
                let language = fields.get("language").map(|language| reader.string(language)).transpose()?;
                Ok(Value::Lambda { language: language.unwrap_or_else(|| "unknown".into()), script })
            }
            "g:Traverser" => {
                let bulk = reader.long(reader.required(fields, "bulk", raw)?)?;
                let value = Arc::new(reader.value(reader.required(fields, "value", raw)?)?);
                Ok(Value::Traverser { bulk, value })
            }
            _ => TraversalReader(reader).predicate(raw, fields),
        })
    }

    fn instructions(&mut self, fields: &Fields<'a>, name: &str) -> Result<Vec<Instruction>> {
        let Some(raw) = fields.get(name) else { return Ok(Vec::new()) };
        let mut instructions = Vec::new();
        self.0.each_item(raw, |reader, instruction| {
            reader.take_instruction()?;
            instructions.push(TraversalReader(reader).instruction(instruction)?);
            Ok(())
        })?;
        Ok(instructions)
    }

    /// An array of a name and arguments.
    fn instruction(&mut self, raw: &'a RawValue) -> Result<Instruction> {
        let (mut name, mut arguments) = (None, Vec::new());
        self.0.each_item(raw, |reader, item| {
            if name.is_none() {
                name = Some(reader.string(item)?);
                return Ok(());
            }
            reader.grow(&mut arguments)?;
            arguments.push(reader.value(item)?);
            Ok(())
        })?;
        let name = name.ok_or_else(|| self.0.error_at(raw, "an instruction has no name"))?;
        Ok(Instruction { name, arguments })
    }

    /// A predicate. Several operands are an array without a type, except those of `within` and `without`.
    fn predicate(&mut self, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Value> {
        let operator = self.0.string(self.0.required(fields, "predicate", raw)?)?;
        let operands = self.0.required(fields, "value", raw)?;
        let are_several = operands.get().starts_with('[') || matches!(&*operator, "within" | "without");
        let operands = match self.0.value(operands)? {
            Value::List(list) if are_several => Arc::unwrap_or_clone(list),
            Value::Set(set) if are_several => set.iter().cloned().collect(),
            value => vec![value],
        };
        Ok(assemble::predicate(operator, operands))
    }

    /// A strategy. Its configuration is the field `conf`; older drivers send it as fields of the strategy itself.
    fn strategy(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        self.0.with_fields(raw, |reader, fields| {
            let class = fields.get("fqcn").map(|class| reader.string(class)).transpose()?;
            let configuration = match fields.get("conf") {
                Some(configuration) => {
                    reader.with_fields(configuration, |reader, fields| reader.map_of_fields(&fields.list))?
                }
                None => {
                    let mut configuration = reader.map_of_fields(&fields.list)?;
                    configuration.shift_remove(&Value::text("fqcn"));
                    configuration
                }
            };
            let name = type_name.strip_prefix("g:").unwrap_or(type_name);
            Ok(assemble::strategy(class.as_deref().unwrap_or(name), configuration))
        })
    }
}
