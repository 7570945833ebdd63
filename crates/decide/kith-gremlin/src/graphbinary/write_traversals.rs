//! Writes traversals and predicates.

use super::{Writer, code::TypeCode};
use crate::{
    bytecode::{Bytecode, Instruction},
    error::Result,
    predicate::Predicate,
    value::Value,
};

impl Writer {
    pub(super) fn bytecode(&mut self, bytecode: &Bytecode) -> Result<()> {
        self.head(TypeCode::Bytecode);
        self.instructions(&bytecode.steps)?;
        self.instructions(&bytecode.sources)
    }

    fn instructions(&mut self, instructions: &[Instruction]) -> Result<()> {
        self.count(instructions.len())?;
        for instruction in instructions {
            self.string(&instruction.name)?;
            self.values(instruction.arguments.iter())?;
        }
        Ok(())
    }

    pub(super) fn predicate(&mut self, predicate: &Predicate) -> Result<()> {
        self.head(if predicate.is_of_text() { TypeCode::TextP } else { TypeCode::P });
        self.string(&predicate.operator)?;
        match (&*predicate.operator, &predicate.operands[..]) {
            ("within" | "without", [Value::List(values)]) => self.values(values.iter()),
            (_, operands) => self.values(operands.iter()),
        }
    }
}
