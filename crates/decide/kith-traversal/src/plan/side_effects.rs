//! Steps that put something aside.

use super::{
    ByArgument, Group, Kind, Label, Traversal,
    arguments::{Arguments, by},
    calls::Call,
    modulators::one_by,
    step::traversal,
};
use crate::error::{GremlinError, Result};
use crate::value::{Barrier, Scope, Symbol, Value};

pub(super) fn compile(call: &Call<'_>) -> Result<Option<Vec<Kind>>> {
    let mut arguments = Arguments::of(call.instruction)?;
    let (kind, modulators): (Kind, &[&str]) = match call.name() {
        "aggregate" | "store" => {
            let is_local = call.name() == "store" || arguments.scope() == Some(Scope::Local);
            let key = arguments.text("the name of a side effect")?;
            (Kind::Aggregate { key, is_local, by: one_by(call)?.unwrap_or(ByArgument::Identity) }, &["by"])
        }
        "group" => (Kind::Group(group(call, optional_key(&mut arguments)?)?), &["by"]),
        "groupCount" => {
            let key = optional_key(&mut arguments)?;
            (Kind::GroupCount { key, by: one_by(call)?.unwrap_or(ByArgument::Identity) }, &["by"])
        }
        "sideEffect" => (Kind::SideEffect(arguments.traversal("a traversal")?), &[]),
        "cap" => {
            let keys = arguments.texts("names of side effects")?;
            if keys.is_empty() {
                return Err(GremlinError::bad("cap() needs the name of a side effect"));
            }
            (Kind::Cap(keys), &[])
        }
        "barrier" => (Kind::Barrier { normalises_sacks: barrier(&mut arguments)? }, &[]),
        "profile" => (Kind::Profile(optional_key(&mut arguments)?), &[]),
        "fail" => (Kind::Fail(arguments.next().cloned()), &[]),
        _ => return Ok(None),
    };
    arguments.finish(call, modulators, kind)
}

/// Whether `barrier` has the argument `normSack`. A size of the barrier makes no difference.
fn barrier(arguments: &mut Arguments<'_>) -> Result<bool> {
    match arguments.next() {
        Some(Value::Symbol(Symbol::Barrier(Barrier::NormSack))) => Ok(true),
        None | Some(Value::Int(_) | Value::Long(_)) => Ok(false),
        Some(other) => Err(GremlinError::bad(format!(
            "barrier() needs a number or Barrier.normSack, not a value of type {}",
            other.type_name()
        ))),
    }
}

fn optional_key(arguments: &mut Arguments<'_>) -> Result<Option<Label>> {
    if arguments.is_empty() { Ok(None) } else { arguments.text("the name of a side effect").map(Some) }
}

fn group(call: &Call<'_>, key: Option<Label>) -> Result<Group> {
    let all = call.modulators("by").collect::<Vec<_>>();
    let of = |at: usize| match all.get(at) {
        None => Ok(ByArgument::Identity),
        Some(modulator) => by("by", modulator.instruction.arguments.first()),
    };
    if all.len() > 2 {
        return Err(GremlinError::bad(
            "the key and value traversals for group()-step have already been set: group() takes two by()",
        ));
    }
    Ok(Group { key, keys: of(0)?, values: values(of(1)?) })
}

/// The traversal that makes the value of a group from its members. Without one that reduces, values are collected.
fn values(by: ByArgument) -> Traversal {
    let value = match by {
        ByArgument::Traversal(traversal) => return traversal,
        ByArgument::Identity => return traversal(vec![Kind::Fold(None)]),
        ByArgument::Token(token) => Kind::Token(token),
        ByArgument::Column(column) => Kind::SelectColumn(column),
        ByArgument::Key(key) => {
            Kind::Map(traversal(vec![Kind::Properties { keys: vec![key], is_value: true }]))
        }
    };
    traversal(vec![value, Kind::Fold(None)])
}
