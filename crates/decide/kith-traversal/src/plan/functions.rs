//! Steps that are functions of a value.

use super::{
    Function, Kind, Label, StepArgument,
    arguments::{Arguments, given, whole},
    calls::Call,
    modulators::all_by,
};
use crate::{
    error::{GremlinError, Result},
    functions::{Template, TextFunction},
    semantics::lists::ListFunction,
    value::{Scope, Symbol, Value},
};

pub(super) fn compile(call: &Call<'_>) -> Result<Option<Vec<Kind>>> {
    let mut arguments = Arguments::of(call.instruction)?;
    if call.name() == "format" {
        call.allow(&["by"])?;
        let function =
            Function::Format { template: Template::parse(&arguments.text("a template")?), by: all_by(call)? };
        arguments.end()?;
        return Ok(Some(vec![Kind::Function(function)]));
    }
    let Some(function) = function(call.name(), &mut arguments)? else { return Ok(None) };
    arguments.finish(call, &[], Kind::Function(function))
}

fn function(name: &str, arguments: &mut Arguments<'_>) -> Result<Option<Function>> {
    if let Some(function) = text_function(name, arguments)? {
        return Ok(Some(function));
    }
    Ok(Some(match name {
        "asString" => Function::AsString(scope(arguments)),
        "asNumber" => Function::AsNumber(match arguments.next() {
            None => None,
            Some(Value::Symbol(Symbol::GType(kind))) => Some(*kind),
            Some(other) => return wrong(name, "a type of GType", other),
        }),
        "asBool" => Function::AsBool,
        "asDate" => Function::AsDate,
        "reverse" => Function::Reverse,
        "concat" => Function::Concat(arguments.rest().iter().map(given).collect::<Result<_>>()?),
        "dateAdd" => match arguments.required("a unit")? {
            Value::Symbol(Symbol::DateUnit(unit)) => {
                Function::DateAdd { unit: *unit, amount: arguments.whole("a number")? }
            }
            other => return wrong(name, "a unit of DT", other),
        },
        "dateDiff" => Function::DateDiff(arguments.given("a date")?),
        "conjoin" => Function::Conjoin(arguments.text("a separator")?),
        name => match name.parse::<ListFunction>() {
            Ok(function) => {
                let argument = arguments.given("a list")?;
                if let StepArgument::Value(value) = &argument {
                    function.check(value)?;
                }
                Function::Lists(function, argument)
            }
            Err(_) => return Ok(None),
        },
    }))
}

fn text_function(name: &str, arguments: &mut Arguments<'_>) -> Result<Option<Function>> {
    let plain = match name {
        "length" => Some(TextFunction::Length),
        "toLower" => Some(TextFunction::ToLower),
        "toUpper" => Some(TextFunction::ToUpper),
        "trim" => Some(TextFunction::Trim),
        "lTrim" => Some(TextFunction::LTrim),
        "rTrim" => Some(TextFunction::RTrim),
        "replace" | "split" | "substring" => None,
        _ => return Ok(None),
    };
    let scope = scope(arguments);
    let function = match (name, plain) {
        (_, Some(plain)) => plain,
        ("replace", _) => {
            TextFunction::Replace { old: text_or_null(name, arguments)?, new: text_or_null(name, arguments)? }
        }
        ("split", _) => TextFunction::Split { separator: text_or_null(name, arguments)? },
        _ => TextFunction::Substring {
            start: index(name, arguments)?,
            end: if arguments.is_empty() { None } else { Some(index(name, arguments)?) },
        },
    };
    Ok(Some(Function::Text(function, scope)))
}

fn scope(arguments: &mut Arguments<'_>) -> Scope {
    arguments.scope().unwrap_or(Scope::Global)
}

fn text_or_null(name: &str, arguments: &mut Arguments<'_>) -> Result<Option<Label>> {
    match arguments.required("strings")? {
        Value::String(text) => Ok(Some(text.clone())),
        Value::Null => Ok(None),
        other => wrong(name, "strings", other),
    }
}

fn index(name: &str, arguments: &mut Arguments<'_>) -> Result<i32> {
    let value = arguments.required("a number")?;
    match whole(value).and_then(|number| i32::try_from(number).ok()) {
        Some(number) => Ok(number),
        None => wrong(name, "a number of 32 bits", value),
    }
}

fn wrong<T>(name: &str, what: &str, found: &Value) -> Result<T> {
    Err(GremlinError::bad(format!("{name}() needs {what}, not a value of type {}", found.type_name())))
}
