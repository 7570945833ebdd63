//! Reads traversals and what they consist of.

use super::{Reader, code::TypeCode};
use crate::{
    assemble,
    bytecode::{Bytecode, Instruction},
    error::Result,
    value::Value,
};
use std::sync::Arc;

/// Reads traversals and their parts from the bytes of a reader.
pub(super) struct TraversalReader<'r, 'a>(pub(super) &'r mut Reader<'a>);

impl TraversalReader<'_, '_> {
    /// A value of one of these types whose type and flag were read.
    pub(super) fn part_of_traversal(&mut self, code: TypeCode) -> Result<Value> {
        Ok(match code {
            TypeCode::Bytecode => {
                let steps = self.instructions()?;
                assemble::traversal(Bytecode { sources: self.instructions()?, steps })
            }
            TypeCode::Binding => {
                self.0.string()?;
                self.0.value()?
            }
            TypeCode::Lambda => {
                let (language, script) = (self.0.string()?, self.0.string()?);
                self.0.i32()?; // The number of its arguments.
                Value::Lambda { language, script }
            }
            TypeCode::TraversalStrategy => {
                let class = self.0.string()?;
                assemble::strategy(&class, self.0.map()?)
            }
            TypeCode::Traverser => {
                let bulk = self.0.i64()?;
                Value::Traverser { bulk, value: Arc::new(self.0.value()?) }
            }
            _ => {
                let operator = self.0.string()?;
                let count = self.0.count(2)?;
                assemble::predicate(operator, self.0.values(count)?)
            }
        })
    }

    fn instructions(&mut self) -> Result<Vec<Instruction>> {
        let count = self.0.count(8)?;
        let mut instructions = Vec::with_capacity(self.0.instruction_capacity(count)?);
        for _ in 0..count {
            let name = self.0.string()?;
            let arguments = self.0.count(2)?;
            instructions.push(Instruction { name, arguments: self.0.values(arguments)? });
        }
        Ok(instructions)
    }
}
