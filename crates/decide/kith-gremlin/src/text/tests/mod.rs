//! Tests of the reader of Gremlin text.

mod literals;
mod traversals;

use super::{Inputs, Script, TextError, parse};
use crate::value::Value;
use chrono::DateTime;

/// The script of a text whose variables are `x`, 7, and `id`, "seven".
fn read(text: &str) -> Result<Script, TextError> {
    let bindings = [("x".into(), Value::Int(7)), ("id".into(), "seven".into())].into_iter().collect();
    parse(text, &Inputs { bindings: &bindings, now: DateTime::UNIX_EPOCH.fixed_offset(), entropy: 9 })
}

fn script(text: &str) -> Script {
    read(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The text of the bytecode, as `Display` writes it.
fn shown(text: &str) -> String {
    script(text).bytecode.to_string()
}

fn error(text: &str) -> String {
    match read(text) {
        Ok(script) => panic!("{text}: {}", script.bytecode),
        Err(error) => error.to_string(),
    }
}

/// The value of a literal.
fn value(literal: &str) -> Value {
    let script = script(&format!("g.inject({literal})"));
    script.bytecode.steps[0].arguments[0].clone()
}
