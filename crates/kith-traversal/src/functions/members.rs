//! The members of collections, for steps with a local scope.

use crate::{GremlinError, Result, value::Value};

/// A bulk set with more values than this is not turned into a list. A bulk may be beyond 2⁵⁰.
const BULK_SET_VALUES_MAX: usize = 1_000_000;

/// The values of a list, set, bulk set or path; `None` if this is none of them.
///
/// # Errors
///
/// The value is a bulk set of more than a million values.
pub fn members(value: &Value) -> Result<Option<Vec<Value>>> {
    Ok(Some(match value {
        Value::List(values) => values.to_vec(),
        Value::Set(values) => values.iter().cloned().collect(),
        Value::Path(path) => path.objects.clone(),
        Value::BulkSet(values) => {
            let mut expanded = values.iter().flat_map(|(value, bulk)| (0..*bulk).map(move |_| value.clone()));
            let members: Vec<Value> = expanded.by_ref().take(BULK_SET_VALUES_MAX).collect();
            if expanded.next().is_some() {
                return Err(GremlinError::bad(format!(
                    "a BulkSet of more than {BULK_SET_VALUES_MAX} values cannot be turned into a list"
                )));
            }
            members
        }
        _ => return Ok(None),
    }))
}
