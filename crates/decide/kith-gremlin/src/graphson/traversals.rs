//! Reads traversals and what they consist of.

use super::{Fields, JsonReader};
use crate::{
    assemble,
    bytecode::{Bytecode, Instruction},
    error::Result,
    room::HEAD,
    value::Value,
};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Reads traversals and their parts from the text of a reader.
pub(super) struct TraversalReader<'r, 'a>(pub(super) &'r mut JsonReader<'a>);

impl<'a> TraversalReader<'_, 'a> {
    pub(super) fn part_of_traversal(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
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
    pub(super) fn strategy(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
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
