//! The calls between the name of a traversal source and the first step.

use super::{Parser, Result};
use crate::{
    assemble::strategy,
    bytecode::{Bytecode, Instruction},
    room::{GROWING_ENTRY, HEAD},
    value::{Map, Value},
};
use std::sync::Arc;

/// The strategy that holds the options of `with`.
const OPTIONS: &str = "OptionsStrategy";
/// The strategy that `withComputer` stands for.
const COMPUTER: &str = "VertexProgramStrategy";

/// Parses the calls of a traversal source with the tokens of a parser.
pub(super) struct SourceParser<'r, 'a>(pub(super) &'r mut Parser<'a>);

impl SourceParser<'_, '_> {
    /// A source instruction, whose name has been taken.
    pub(super) fn source_step(&mut self, at: usize, name: &str, bytecode: &mut Bytecode) -> Result<()> {
        let (name, arguments) = match name {
            "with" => return self.option(at, bytecode),
            "withStrategies" => (name, self.strategies(|parser| SourceParser(parser).strategy())?),
            "withoutStrategies" => {
                (name, self.strategies(|parser| SourceParser(parser).class_name().map(Value::Class))?)
            }
            "withComputer" => {
                self.0.arguments()?;
                ("withStrategies", vec![strategy(COMPUTER, Map::default())])
            }
            _ => (name, self.0.arguments()?),
        };
        bytecode.sources.push(Instruction::new(name, arguments));
        Ok(())
    }

    /// `with("key", value)`, or `with("key")` for true. All of them become one strategy.
    fn option(&mut self, at: usize, bytecode: &mut Bytecode) -> Result<()> {
        let arguments = self.0.arguments()?;
        let (key, value) = match arguments.as_slice() {
            [key @ Value::String(_)] => (key, Value::Bool(true)),
            [key @ Value::String(_), value] => (key, value.clone()),
            _ => return Err(self.0.error(at, "with() takes the name of an option and its value")),
        };
        for instruction in bytecode.sources.iter_mut().filter(|source| &*source.name == "withStrategies") {
            if let Some(Value::Strategy { name, configuration }) = instruction.arguments.first_mut()
                && &**name == OPTIONS
            {
                Arc::make_mut(configuration).insert(key.clone(), value);
                return Ok(());
            }
        }
        let options = strategy(OPTIONS, Map::from_iter([(key.clone(), value)]));
        bytecode.sources.push(Instruction::new("withStrategies", vec![options]));
        Ok(())
    }

    /// One or more strategies in parentheses.
    fn strategies(&mut self, mut item: impl FnMut(&mut Parser<'_>) -> Result<Value>) -> Result<Vec<Value>> {
        self.0.expect('(')?;
        let mut strategies = Vec::new();
        self.0.items(')', |parser| {
            parser.grow(&mut strategies)?;
            strategies.push(item(parser)?);
            Ok(())
        })?;
        Ok(strategies)
    }

    /// `ReadOnlyStrategy`, or `new SubgraphStrategy(vertices: hasLabel("person"))`.
    fn strategy(&mut self) -> Result<Value> {
        self.0.take_room(3 * HEAD)?;
        let name = self.class_name()?;
        let mut configuration = Map::default();
        if self.0.eat('(')? {
            self.0.items(')', |parser| {
                parser.take_room(GROWING_ENTRY + 2 * HEAD)?;
                let key = parser.name("the name of a setting of the strategy")?;
                parser.expect(':')?;
                let value = parser.value()?;
                configuration.insert(Value::text(key), value);
                Ok(())
            })?;
        }
        Ok(strategy(&name, configuration))
    }

    /// The name of a class, of which only the part after the last dot matters; `new` can stand before it.
    fn class_name(&mut self) -> Result<Arc<str>> {
        let mut name = self.0.name("the name of a strategy")?;
        if name == "new" {
            name = self.0.name("the name of a strategy")?;
        }
        while self.0.eat('.')? {
            name = self.0.name("the name of a strategy")?;
        }
        Ok(name.into())
    }
}
