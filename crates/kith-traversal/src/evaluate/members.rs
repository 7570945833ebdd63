//! The members of values.

use crate::value::Value;

/// The members of a list, a set or another value with members; `None` for all others. A map has none.
pub(super) fn members(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(members) => Some(members.to_vec()),
        Value::Set(members) => Some(members.iter().cloned().collect()),
        Value::BulkSet(members) => {
            let each =
                |(value, bulk): &(Value, i64)| std::iter::repeat_n(value.clone(), (*bulk).max(0) as usize);
            Some(members.iter().flat_map(each).collect())
        }
        Value::Path(path) => Some(path.objects.clone()),
        _ => None,
    }
}
