//! Instructions grouped into calls: each is a step with the modulators that follow it.

use super::Label;
use crate::{
    bytecode::Instruction,
    error::{GremlinError, Result},
    value::{Symbol, Value},
};

/// A step and its modulators.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The step.
    pub instruction: &'a Instruction,
    /// The modulators other than `as`, in their order. Those of `repeat` that come before it are marked as such.
    pub modulators: Vec<Modulator<'a>>,
    /// The labels that `as` gives to the step.
    pub labels: Vec<Label>,
}

/// A modulator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modulator<'a> {
    pub instruction: &'a Instruction,
    /// Whether it stands before the step (`until(…).repeat(…)`).
    pub is_before: bool,
}

impl<'a> Call<'a> {
    /// The name of the step.
    pub fn name(&self) -> &'a str {
        &self.instruction.name
    }

    /// The modulators with this name.
    pub fn modulators(&self, name: &'a str) -> impl Iterator<Item = Modulator<'a>> {
        self.modulators.iter().copied().filter(move |modulator| &*modulator.instruction.name == name)
    }

    /// Refuses modulators with other names than these.
    pub fn allow(&self, names: &[&str]) -> Result<()> {
        match self.modulators.iter().find(|modulator| !names.contains(&&*modulator.instruction.name)) {
            None => Ok(()),
            Some(modulator) => Err(GremlinError::bad(format!(
                "{}() cannot follow {}()",
                modulator.instruction.name,
                self.name()
            ))),
        }
    }
}

/// Groups instructions into calls.
pub(super) fn group(instructions: &[Instruction]) -> Result<Vec<Call<'_>>> {
    let mut calls: Vec<Call<'_>> = Vec::with_capacity(instructions.len());
    let mut before: Vec<Modulator<'_>> = Vec::new();
    for instruction in instructions {
        let name = &*instruction.name;
        match (calls.last_mut(), name) {
            (Some(call), "as") => call.labels.extend(labels(instruction)?),
            (None, "as") => {
                let labels = labels(instruction)?;
                calls.push(Call { instruction, modulators: Vec::new(), labels });
            }
            (last, "until" | "emit" | "times") => match last {
                Some(call)
                    if call.name() == "repeat" && before.is_empty() && !has(&call.modulators, name) =>
                {
                    call.modulators.push(Modulator { instruction, is_before: false });
                }
                _ if has(&before, name) => break,
                _ => before.push(Modulator { instruction, is_before: true }),
            },
            (Some(call), _) if is_modulator(instruction, call.name()) => {
                call.modulators.push(Modulator { instruction, is_before: false });
            }
            (_, "repeat") => {
                let modulators = std::mem::take(&mut before);
                calls.push(Call { instruction, modulators, labels: Vec::new() });
            }
            _ => calls.push(Call { instruction, modulators: Vec::new(), labels: Vec::new() }),
        }
    }
    match before.first() {
        None => Ok(calls),
        Some(modulator) => Err(GremlinError::bad(format!(
            "the repeat()-traversal was not defined: {}() needs a repeat()",
            modulator.instruction.name
        ))),
    }
}

/// Whether a `repeat` with these modulators has one of this kind. If it does, the next one belongs to the next `repeat`.
fn has(modulators: &[Modulator<'_>], name: &str) -> bool {
    let ends = |name: &str| matches!(name, "until" | "times");
    modulators.iter().any(|modulator| {
        let other = &*modulator.instruction.name;
        other == name || (ends(other) && ends(name))
    })
}

/// Whether an instruction changes the step before it, which has the name `step`, instead of being a step of its own.
fn is_modulator(instruction: &Instruction, step: &str) -> bool {
    let is_hop = matches!(instruction.arguments.first(), Some(Value::Symbol(Symbol::Direction(_))));
    match &*instruction.name {
        "by" | "with" | "option" | "from" => true,
        "to" => !is_hop,
        // Properties of an element that is being added belong to the same change.
        "property" => matches!(step, "addV" | "addE"),
        _ => false,
    }
}

fn labels(instruction: &Instruction) -> Result<Vec<Label>> {
    let label = |value: &Value| match value {
        Value::String(label) => Ok(label.clone()),
        other => {
            Err(GremlinError::bad(format!("as() takes strings, not a value of type {}", other.type_name())))
        }
    };
    if instruction.arguments.is_empty() {
        return Err(GremlinError::bad("as() needs a label"));
    }
    instruction.arguments.iter().map(label).collect()
}
