//! How many bytes functions of values return at most, found out before they are applied.
//!
//! [`of_function`] names every function, so that a new one cannot be added without saying how far it grows.

use super::{
    context::Context,
    weight::{self, VALUE_BYTES},
};
use crate::{
    error::Result,
    functions::{Part, Template, TextFunction},
    plan::Function,
    semantics::lists::ListFunction,
    value::{Scope, Value},
};
use std::fmt::{self, Write};

/// Lower and upper case may need three bytes where there was one.
const CASE_FACTOR: u64 = 3;

/// The bytes that a function of one value returns at most. Functions with further arguments are measured with these, by
/// [`of_texts`], [`of_template`] and [`of_lists`].
pub(super) fn of_function(function: &Function, value: &Value, context: &Context<'_>) -> Result<u64> {
    let most = context.meter.left();
    Ok(match function {
        Function::AsString(Scope::Global) => match value {
            Value::String(_) => VALUE_BYTES,
            value => VALUE_BYTES + text_length(value, most),
        },
        Function::AsString(Scope::Local) => of_members(value, most, &|member| text_length(member, most)),
        Function::Text(function, Scope::Global) => VALUE_BYTES.saturating_add(of_text(function, value)),
        Function::Text(function, Scope::Local) => {
            of_members(value, most, &|member| of_text(function, member))
        }
        Function::Conjoin(separator) => {
            let members = of_members(value, most, &|member| {
                text_length(member, most).saturating_add(separator.len() as u64)
            });
            // The texts of the members, and the text that joins them.
            members.saturating_mul(2)
        }
        Function::Reverse => weight::unrolled(value, most),
        // A number has no more digits than the text, and is written in fewer bytes.
        Function::AsNumber(_) => weight::up_to(value, most),
        Function::AsBool | Function::AsDate | Function::DateAdd { .. } | Function::DateDiff(_) => VALUE_BYTES,
        Function::Concat(_) | Function::Format { .. } | Function::Lists(..) => 0,
    })
}

/// The bytes of texts, one after the other.
pub(super) fn of_texts<'v>(parts: impl Iterator<Item = &'v Value>) -> u64 {
    let lengths = parts.filter_map(Value::as_text).map(|text| text.len() as u64);
    lengths.fold(VALUE_BYTES, u64::saturating_add)
}

/// The bytes of a template with these values.
pub(super) fn of_template(template: &Template, row: &[Value], context: &Context<'_>) -> u64 {
    let most = context.meter.left();
    let plain = template.parts.iter().map(|part| match part {
        Part::Plain(text) => text.len() as u64,
        Part::Variable(_) | Part::Modulated => 0,
    });
    let mut bytes = plain.fold(VALUE_BYTES, u64::saturating_add);
    for value in row {
        if most < bytes {
            break;
        }
        bytes = bytes.saturating_add(text_length(value, most));
    }
    bytes
}

/// The bytes of what a function of lists returns.
pub(super) fn of_lists(function: ListFunction, a: &Value, b: &Value, context: &Context<'_>) -> u64 {
    let most = context.meter.left();
    let (all_a, all_b) = (weight::unrolled(a, most), weight::unrolled(b, most));
    match function {
        ListFunction::Product => {
            let (count_a, count_b) = (members(a), members(b));
            let values = count_b.saturating_mul(all_a).saturating_add(count_a.saturating_mul(all_b));
            values.saturating_add(count_a.saturating_mul(count_b).saturating_mul(2 * VALUE_BYTES))
        }
        ListFunction::Combine => all_a.saturating_add(all_b),
        // The lists that become sets, and the set of both.
        ListFunction::Intersect | ListFunction::Difference | ListFunction::Disjunct | ListFunction::Merge => {
            all_a.saturating_add(all_b).saturating_mul(4)
        }
    }
}

fn of_members(value: &Value, most: u64, of_one: &dyn Fn(&Value) -> u64) -> u64 {
    let mut bytes = VALUE_BYTES;
    let mut add = |member: &Value, bulk: u64| {
        if bytes <= most {
            let one = (2 * VALUE_BYTES).saturating_add(of_one(member));
            bytes = bytes.saturating_add(one.saturating_mul(bulk));
        }
    };
    match value {
        Value::List(members) => members.iter().for_each(|member| add(member, 1)),
        Value::Set(members) => members.iter().for_each(|member| add(member, 1)),
        Value::Path(path) => path.objects.iter().for_each(|member| add(member, 1)),
        Value::BulkSet(members) => {
            members.iter().for_each(|(member, bulk)| add(member, (*bulk).max(0).unsigned_abs()));
        }
        other => add(other, 1),
    }
    bytes
}

fn of_text(function: &TextFunction, value: &Value) -> u64 {
    let Some(text) = value.as_text() else { return 0 };
    let length = text.len() as u64;
    match function {
        TextFunction::Length => 0,
        TextFunction::Trim | TextFunction::LTrim | TextFunction::RTrim => length,
        TextFunction::ToLower | TextFunction::ToUpper => length.saturating_mul(CASE_FACTOR),
        TextFunction::Replace { old: Some(old), new: Some(new) } if !old.is_empty() => {
            let count = text.matches(&**old).count() as u64;
            (length - count * old.len() as u64).saturating_add(count.saturating_mul(new.len() as u64))
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
    }
}

/// How often members occur in a value.
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

/// The bytes of the text of a value, or a number beyond `most`. It is not written anywhere: values that share their parts may
/// have a text that is far longer than what they take.
fn text_length(value: &Value, most: u64) -> u64 {
    if let Some(text) = value.as_text() {
        return text.len() as u64;
    }
    let mut count = Count { length: 0, most };
    // It ends with an error where the text is longer than allowed.
    let _ = write!(count, "{value}");
    count.length
}

struct Count {
    length: u64,
    most: u64,
}

impl Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.length = self.length.saturating_add(text.len() as u64);
        if self.length <= self.most { Ok(()) } else { Err(fmt::Error) }
    }
}
