//! Reads traversals and what they consist of.

use super::{Fields, Reader};
use crate::{
    assemble,
    bytecode::{Bytecode, Instruction},
    error::Result,
    value::{Map, Value},
};
use serde_json::value::RawValue;
use std::sync::Arc;

impl<'a> Reader<'a> {
    pub(super) fn part_of_traversal(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        let fields = self.fields(raw)?;
        match type_name {
            "g:Bytecode" => {
                let sources = self.instructions(&fields, "source")?;
                let steps = self.instructions(&fields, "step")?;
                Ok(assemble::traversal(Bytecode { sources, steps }))
            }
            "g:Binding" => self.value(self.required(&fields, "value", raw)?),
            "g:Lambda" => {
                let script = self.string(self.required(&fields, "script", raw)?)?;
                let language = fields.get("language").map(|language| self.string(language)).transpose()?;
                Ok(Value::Lambda { language: language.unwrap_or_else(|| "unknown".into()), script })
            }
            "g:Traverser" => {
                let bulk = self.long(self.required(&fields, "bulk", raw)?)?;
                let value = Arc::new(self.value(self.required(&fields, "value", raw)?)?);
                Ok(Value::Traverser { bulk, value })
            }
            _ => self.predicate(raw, &fields),
        }
    }

    fn instructions(&mut self, fields: &Fields<'a>, name: &str) -> Result<Vec<Instruction>> {
        let Some(raw) = fields.get(name) else { return Ok(Vec::new()) };
        self.items(raw)?.into_iter().map(|instruction| self.instruction(instruction)).collect()
    }

    /// An array of a name and arguments.
    fn instruction(&mut self, raw: &'a RawValue) -> Result<Instruction> {
        let items = self.items(raw)?;
        let Some((name, arguments)) = items.split_first() else {
            return Err(self.error_at(raw, "an instruction has no name"));
        };
        let name = self.string(name)?;
        let arguments = arguments.iter().map(|argument| self.value(argument)).collect::<Result<_>>()?;
        Ok(Instruction { name, arguments })
    }

    /// A predicate. Several operands are an array without a type, except those of `within` and `without`.
    fn predicate(&mut self, raw: &'a RawValue, fields: &Fields<'a>) -> Result<Value> {
        let operator = self.string(self.required(fields, "predicate", raw)?)?;
        let operands = self.required(fields, "value", raw)?;
        let are_several = operands.get().starts_with('[') || matches!(&*operator, "within" | "without");
        let operands = match self.value(operands)? {
            Value::List(list) if are_several => Arc::unwrap_or_clone(list),
            Value::Set(set) if are_several => set.iter().cloned().collect(),
            value => vec![value],
        };
        Ok(assemble::predicate(operator, operands))
    }

    /// A strategy. Its configuration is the field `conf`; older drivers send it as fields of the strategy itself.
    pub(super) fn strategy(&mut self, type_name: &str, raw: &'a RawValue) -> Result<Value> {
        let fields = self.fields(raw)?;
        let class = fields.get("fqcn").map(|class| self.string(class)).transpose()?;
        let configuration = match fields.get("conf") {
            Some(configuration) => self.fields(configuration)?.0,
            None => fields.0.into_iter().filter(|(name, _)| name != "fqcn").collect(),
        };
        let entries = configuration.into_iter().map(|(name, raw)| Ok((Value::text(name), self.value(raw)?)));
        let configuration = entries.collect::<Result<Map>>()?;
        let name = type_name.strip_prefix("g:").unwrap_or(type_name);
        Ok(assemble::strategy(class.as_deref().unwrap_or(name), configuration))
    }
}
