//! The instructions of a source: `with`, `withSideEffect`, `withStrategies` and others.

use super::{Source, arguments::Arguments, strategies};
use crate::{
    bytecode::Instruction,
    error::{GremlinError, Result},
    value::{Operator, Symbol, Value},
};

pub(super) fn compile(instructions: &[Instruction]) -> Result<Source> {
    let mut source = Source::default();
    for instruction in instructions {
        let mut arguments = Arguments::of(instruction)?;
        match &*instruction.name {
            "withSideEffect" => {
                let key = arguments.text("the name of a side effect")?;
                let value = arguments.required("a value")?.clone();
                source.side_effects.push((key, value, operator(&mut arguments)?));
            }
            "withSack" => {
                let value = arguments.required("a value")?.clone();
                source.sack = Some((value, operator(&mut arguments)?));
            }
            "withStrategies" => strategies::add(&mut source, arguments.rest())?,
            "with" => {
                let key = arguments.text("the name of an option")?;
                source.options.push((key, arguments.next().cloned().unwrap_or(Value::Bool(true))));
            }
            "withPath" => source.with_paths = true,
            "withBulk" => source.is_bulked = arguments.flag("whether traversers are counted")?,
            "withoutStrategies" => drop(arguments.rest()),
            "withComputer" => return Err(GremlinError::unsupported("withComputer()")),
            "tx" => return Err(GremlinError::unsupported("a transaction of several traversals (tx())")),
            name => return Err(GremlinError::bad(format!("{name}() is no method of a traversal source"))),
        }
        arguments.end()?;
    }
    Ok(source)
}

fn operator(arguments: &mut Arguments<'_>) -> Result<Option<Operator>> {
    match arguments.next() {
        None => Ok(None),
        Some(Value::Symbol(Symbol::Operator(operator))) => Ok(Some(*operator)),
        Some(other) => Err(GremlinError::bad(format!(
            "an operator is needed, not a value of type {}",
            other.type_name()
        ))),
    }
}
