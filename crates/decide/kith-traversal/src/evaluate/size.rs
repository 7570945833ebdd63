//! The most bytes that functions of values return, found out before they are applied.
//!
//! [`of_function`] names every function, so that a new one cannot be added without saying how far it grows.

use super::{
    context::Context,
    weight::{self, VALUE_BYTES},
};
use crate::{
    error::{GremlinError, Result},
    functions::{Part, Template, TextFunction},
    plan::Function,
    semantics::lists::ListFunction,
    value::{Scope, Value},
};
use kith_types::ErrorCode;
use std::fmt::{self, Write};

/// Lower and upper case may need three bytes where there was one.
const CASE_FACTOR: u64 = 3;

/// Functions take and make texts of at most this many bytes. No traversal can be sent with a longer one.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// A value that a function makes, and each result, takes at most this many bytes. It is made and coded at one go, during which
/// the thread does nothing else.
const VALUE_BYTES_MAX: u64 = 64 << 20;

/// The bytes that a function of one value returns at most. Functions with further arguments are measured with these, by
/// [`of_texts`], [`of_template`] and [`of_lists`].
///
/// # Errors
/// It would take or make a longer text or a larger value than functions do.
pub(super) fn of_function(function: &Function, value: &Value, context: &Context<'_>) -> Result<u64> {
    let most = context.work.meter.left().min(VALUE_BYTES_MAX);
    let bytes = match function {
        Function::AsString(Scope::Global) => VALUE_BYTES + text_length(value)?,
        Function::AsString(Scope::Local) => of_members(value, most, &mut text_length)?,
        Function::Text(function, Scope::Global) => VALUE_BYTES.saturating_add(of_text(function, value)?),
        Function::Text(function, Scope::Local) => {
            of_members(value, most, &mut |member| of_text(function, member))?
        }
        Function::Conjoin(separator) => {
            let mut whole = 0_u64;
            let members = of_members(value, most, &mut |member| {
                let length = text_length(member)?.saturating_add(separator.len() as u64);
                whole = whole.saturating_add(length);
                Ok(length)
            })?;
            // The texts of the members, and the text that joins them.
            members.saturating_add(check_text(whole)?)
        }
        Function::Reverse => {
            check_text(value.as_text().map_or(0, |text| text.len() as u64))?;
            weight::unrolled(value, most)
        }
        // A number has no more digits than the text, and is written in fewer bytes.
        Function::AsNumber(_) => weight::up_to(value, most),
        Function::AsBool | Function::AsDate | Function::DateAdd { .. } | Function::DateDiff(_) => VALUE_BYTES,
        Function::Concat(_) | Function::Format { .. } | Function::Lists(..) => 0,
    };
    check_value(bytes, context)
}

/// The bytes of texts, one after the other.
///
/// # Errors
/// As [`of_function`].
pub(super) fn of_texts<'v>(parts: impl Iterator<Item = &'v Value>) -> Result<u64> {
    let lengths = parts.filter_map(Value::as_text).map(|text| text.len() as u64);
    Ok(VALUE_BYTES + check_text(lengths.fold(0, u64::saturating_add))?)
}

/// The bytes of a template with these values.
///
/// # Errors
/// As [`of_function`].
pub(super) fn of_template(template: &Template, row: &[Value]) -> Result<u64> {
    let plain = template.parts.iter().map(|part| match part {
        Part::Plain(text) => text.len() as u64,
        Part::Variable(_) | Part::Modulated => 0,
    });
    let mut bytes = plain.fold(0, u64::saturating_add);
    for value in row {
        bytes = check_text(bytes.saturating_add(text_length(value)?))?;
    }
    Ok(VALUE_BYTES + check_text(bytes)?)
}

/// The bytes of what a function of lists returns, and takes meanwhile.
///
/// # Errors
/// As [`of_function`].
pub(super) fn of_lists(function: ListFunction, a: &Value, b: &Value, context: &Context<'_>) -> Result<u64> {
    let most = context.work.meter.left().min(VALUE_BYTES_MAX);
    let (all_a, all_b) = (weight::unrolled(a, most), weight::unrolled(b, most));
    let both = check_value(all_a.saturating_add(all_b), context)?;
    match function {
        ListFunction::Product => {
            let (count_a, count_b) = (members(a), members(b));
            let values = count_b.saturating_mul(all_a).saturating_add(count_a.saturating_mul(all_b));
            let pairs = count_a.saturating_mul(count_b).saturating_mul(2 * VALUE_BYTES);
            check_value(values.saturating_add(pairs), context)
        }
        ListFunction::Combine => Ok(both),
        // The lists that become sets, and the set of both.
        ListFunction::Intersect | ListFunction::Difference | ListFunction::Disjunct | ListFunction::Merge => {
            Ok(both.saturating_mul(4))
        }
    }
}

/// The bytes of a result.
///
/// # Errors
/// It is larger than results may be.
pub(super) fn of_result(value: &Value, context: &Context<'_>) -> Result<u64> {
    let most = context.work.meter.left().min(VALUE_BYTES_MAX);
    check_value(weight::up_to(value, most), context)
}

fn check_text(length: u64) -> Result<u64> {
    if length <= TEXT_BYTES_MAX {
        return Ok(length);
    }
    Err(GremlinError::new(
        ErrorCode::TooLarge,
        format!(
            "a function of the traversal takes or makes a text of more than {TEXT_BYTES_MAX} bytes, which is the most"
        ),
    ))
}

/// Values that are too large for what is left in any case are left to the meter.
fn check_value(bytes: u64, context: &Context<'_>) -> Result<u64> {
    if bytes <= VALUE_BYTES_MAX || context.work.meter.left() < bytes {
        return Ok(bytes);
    }
    Err(GremlinError::new(
        ErrorCode::TooLarge,
        format!(
            "one value would take more than {VALUE_BYTES_MAX} bytes, which is the most for a result and for what a function \
             makes; unfold() its members, or ask for fewer"
        ),
    ))
}

fn of_members(value: &Value, most: u64, of_one: &mut dyn FnMut(&Value) -> Result<u64>) -> Result<u64> {
    let mut bytes = VALUE_BYTES;
    let mut add = |member: &Value, bulk: u64| -> Result<()> {
        if bytes <= most {
            let one = (2 * VALUE_BYTES).saturating_add(of_one(member)?);
            bytes = bytes.saturating_add(one.saturating_mul(bulk));
        }
        Ok(())
    };
    match value {
        Value::List(members) => members.iter().try_for_each(|member| add(member, 1))?,
        Value::Set(members) => members.iter().try_for_each(|member| add(member, 1))?,
        Value::Path(path) => path.objects.iter().try_for_each(|member| add(member, 1))?,
        Value::BulkSet(members) => {
            members.iter().try_for_each(|(member, bulk)| add(member, (*bulk).max(0).unsigned_abs()))?;
        }
        other => add(other, 1)?,
    }
    Ok(bytes)
}

fn of_text(function: &TextFunction, value: &Value) -> Result<u64> {
    let Some(text) = value.as_text() else { return Ok(0) };
    let length = check_text(text.len() as u64)?;
    Ok(match function {
        TextFunction::Length => 0,
        TextFunction::Trim | TextFunction::LTrim | TextFunction::RTrim => length,
        TextFunction::ToLower | TextFunction::ToUpper => length.saturating_mul(CASE_FACTOR),
        TextFunction::Replace { old: Some(old), new: Some(new) } if !old.is_empty() => {
            let count = text.matches(&**old).count() as u64;
            let kept = length - count * old.len() as u64;
            check_text(kept.saturating_add(count.saturating_mul(new.len() as u64)))?
        }
        TextFunction::Replace { .. } => 0,
        TextFunction::Split { separator } => {
            let count = match separator.as_deref() {
                Some("") => length,
                Some(separator) => text.matches(separator).count() as u64,
                None => text.split_whitespace().count() as u64,
            };
            length.saturating_add((count + 1).saturating_mul(2 * VALUE_BYTES))
        }
        // Its code units in 16 bits, and the part of them.
        TextFunction::Substring { .. } => length.saturating_mul(3),
    })
}

/// The number of times that members occur in a value.
pub(super) fn members(value: &Value) -> u64 {
    match value {
        Value::List(members) => members.len() as u64,
        Value::Set(members) => members.len() as u64,
        Value::Map(entries) => entries.len() as u64,
        Value::Path(path) => path.objects.len() as u64,
        Value::BulkSet(members) => {
            let bulks = members.iter().map(|(_, bulk)| (*bulk).max(0).unsigned_abs());
            bulks.fold(0, u64::saturating_add)
        }
        _ => 1,
    }
}

/// The bytes of the text of a value. It is not written anywhere: values that share their parts may have a text that is far longer
/// than what they take.
fn text_length(value: &Value) -> Result<u64> {
    if let Some(text) = value.as_text() {
        return check_text(text.len() as u64);
    }
    let mut count = Count(0);
    // It ends with an error where the text is longer than allowed.
    let _ = write!(count, "{value}");
    check_text(count.0)
}

struct Count(u64);

impl Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(text.len() as u64);
        if self.0 <= TEXT_BYTES_MAX { Ok(()) } else { Err(fmt::Error) }
    }
}
