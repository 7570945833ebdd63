//! Reads traversals and what they consist of.

use super::{Reader, code::TypeCode};
use crate::{
    assemble,
    bytecode::{Bytecode, Instruction},
    error::Result,
    value::Value,
};
use std::sync::Arc;

impl Reader<'_> {
    /// A value of one of these types whose type and flag were read.
    pub(super) fn part_of_traversal(&mut self, code: TypeCode) -> Result<Value> {
        Ok(match code {
            TypeCode::Bytecode => {
                let steps = self.instructions()?;
                assemble::traversal(Bytecode { sources: self.instructions()?, steps })
            }
            TypeCode::Binding => {
                self.string()?;
                self.value()?
            }
            TypeCode::Lambda => {
                let (language, script) = (self.string()?, self.string()?);
                self.i32()?; // The number of its arguments.
                Value::Lambda { language, script }
            }
            TypeCode::TraversalStrategy => {
                let class = self.string()?;
                assemble::strategy(&class, self.map()?)
            }
            TypeCode::Traverser => {
                let bulk = self.i64()?;
                Value::Traverser { bulk, value: Arc::new(self.value()?) }
            }
            _ => {
                let operator = self.string()?;
                let count = self.count(2)?;
                assemble::predicate(operator, self.values(count)?)
            }
        })
    }

    fn instructions(&mut self) -> Result<Vec<Instruction>> {
        let count = self.count(8)?;
        let mut instructions = Vec::with_capacity(self.instruction_capacity(count)?);
        for _ in 0..count {
            let name = self.string()?;
            let arguments = self.count(2)?;
            instructions.push(Instruction { name, arguments: self.values(arguments)? });
        }
        Ok(instructions)
    }
}
