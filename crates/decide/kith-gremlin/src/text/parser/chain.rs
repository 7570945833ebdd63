//! Traversals: calls joined by dots.

use super::{Parser, Result, source::SourceParser};
use crate::{
    bytecode::{Bytecode, Instruction},
    text::{
        Script, Terminal,
        error::unknown,
        tokens::Token,
        words::{FIRST_STEPS, SOURCE_STEPS, STEPS, TERMINALS},
    },
    value::Value,
};

impl Parser<'_> {
    /// The whole text.
    pub fn script(mut self) -> Result<Script> {
        let source = self.name("the name of a traversal source, such as g")?;
        let mut bytecode = Bytecode::default();
        let mut terminal = None;
        while self.eat('.')? {
            let at = self.at;
            self.take_instruction()?;
            let name = self.name("the name of a step")?;
            if let Some((_, ending)) = terminal {
                return Err(self.error(at, format!("{ending}() ends the traversal; nothing can follow it")));
            }
            if bytecode.steps.is_empty() && SOURCE_STEPS.contains(&name) {
                SourceParser(&mut self).source_step(at, name, &mut bytecode)?;
            } else if !bytecode.steps.is_empty() && TERMINALS.contains(&name) {
                terminal = Some((self.terminal(name)?, name));
            } else {
                self.check_step(at, name, &bytecode)?;
                let arguments = self.arguments()?;
                bytecode.steps.push(Instruction::new(name, arguments));
            }
        }
        if bytecode.steps.is_empty() {
            return Err(self.unexpected(&format!("a step, such as {source}.V()")));
        }
        self.end()?;
        Ok(Script { source: source.into(), bytecode, terminal: terminal.map(|(terminal, _)| terminal) })
    }

    /// Checks that nothing follows the traversal.
    fn end(&mut self) -> Result<()> {
        let mut at = self.at;
        while self.eat(';')? {
            at = self.at;
        }
        match self.token {
            Token::End => Ok(()),
            Token::Name(_) => {
                Err(self.error(at, "a second traversal begins here; send each in a request of its own"))
            }
            _ => Err(self.unexpected("\".\" and a step, or the end of the text")),
        }
    }

    /// Checks the name of a step that follows the others of a traversal from a source.
    fn check_step(&self, at: usize, name: &str, bytecode: &Bytecode) -> Result<()> {
        if !bytecode.steps.is_empty() {
            return self.check_known(at, name);
        }
        if FIRST_STEPS.contains(&name) {
            return Ok(());
        }
        if name == "tx" {
            return Err(self.unsupported(at, "a transaction of several requests, tx(),"));
        }
        let message = if STEPS.contains(&name) || TERMINALS.contains(&name) {
            format!("{name}() cannot begin a traversal; {} can", FIRST_STEPS.join(", "))
        } else {
            unknown("step", name, FIRST_STEPS.iter().chain(SOURCE_STEPS).copied())
        };
        Err(self.error(at, message))
    }

    /// Checks the name of a step that is not the first one.
    fn check_known(&self, at: usize, name: &str) -> Result<()> {
        if STEPS.contains(&name) {
            return Ok(());
        }
        Err(self.error(at, unknown("step", name, STEPS.iter().chain(TERMINALS).copied())))
    }

    /// The steps of an anonymous traversal that follow those that it has.
    pub(super) fn anonymous(&mut self, mut bytecode: Bytecode) -> Result<Value> {
        while self.eat('.')? {
            let at = self.at;
            self.take_instruction()?;
            let name = self.name("the name of a step")?;
            if TERMINALS.contains(&name) {
                let what = format!("{name}() within a nested traversal");
                return Err(self.unsupported(at, &what));
            }
            self.check_known(at, name)?;
            let arguments = self.arguments()?;
            bytecode.steps.push(Instruction::new(name, arguments));
        }
        Ok(Value::Traversal(bytecode.into()))
    }

    /// Values in parentheses.
    pub(super) fn arguments(&mut self) -> Result<Vec<Value>> {
        if self.is('{') {
            return Err(self.unsupported(self.at, "a lambda"));
        }
        self.expect('(')?;
        let mut arguments = Vec::new();
        self.items(')', |parser| {
            parser.grow(&mut arguments)?;
            arguments.push(parser.value()?);
            Ok(())
        })?;
        Ok(arguments)
    }

    /// The arguments of a method at the end, whose name has been taken.
    fn terminal(&mut self, name: &str) -> Result<Terminal> {
        let at = self.at;
        let arguments = self.arguments()?;
        let terminal = match name {
            "next" => return self.next_terminal(at, &arguments),
            "toList" => Terminal::ToList,
            "toSet" => Terminal::ToSet,
            "toBulkSet" => Terminal::ToBulkSet,
            "iterate" => Terminal::Iterate,
            "hasNext" => Terminal::HasNext,
            "tryNext" => Terminal::TryNext,
            _ => Terminal::Explain,
        };
        match arguments.is_empty() {
            true => Ok(terminal),
            false => Err(self.error(at, format!("{name}() takes no argument"))),
        }
    }

    fn next_terminal(&self, at: usize, arguments: &[Value]) -> Result<Terminal> {
        let count = match arguments {
            [] => Some(None),
            [Value::Int(count)] => u32::try_from(*count).ok().map(Some),
            _ => None,
        };
        let error = || self.error(at, "next() takes no argument, or how many results to take");
        count.map(Terminal::Next).ok_or_else(error)
    }
}
