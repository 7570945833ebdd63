//! Conditions on a value, which `docs/queries.md` describes, such as `{"ge": 18, "lt": 30}`.

use kith_schema::compute::{Bucket, Comparison, Operand, Predicate};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyString},
};

/// Converts a dictionary of names and conditions to buckets, in the order of the dictionary.
///
/// # Errors
/// `TypeError` or `ValueError` if a condition is invalid or nested too deeply.
pub fn buckets(given: &Bound<'_, PyDict>) -> PyResult<Vec<Bucket>> {
    let bucket = |(name, conditions): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok(Bucket { name: name.extract()?, predicate: predicate(&conditions, Predicate::DEPTH_MAX)? })
    };
    given.iter().map(bucket).collect()
}

fn predicate(given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Predicate> {
    let conditions = given
        .cast::<PyDict>()
        .map_err(|_| PyTypeError::new_err("a condition must be a dict such as {\"ge\": 18, \"lt\": 30}"))?;
    let depth =
        depth.checked_sub(1).ok_or_else(|| PyValueError::new_err("conditions are nested too deeply"))?;
    let mut all = Vec::with_capacity(conditions.len());
    for (word, value) in conditions {
        let word: String = word.extract()?;
        all.push(condition(&word, &value, depth)?);
    }
    match all.len() {
        0 => Err(PyValueError::new_err(
            "a condition must have at least one of eq, gt, ge, lt, le, any_of, and, or",
        )),
        1 => Ok(all.remove(0)),
        _ => Ok(Predicate::And(all)),
    }
}

fn condition(word: &str, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Predicate> {
    let inner = || value.try_iter()?.map(|one| predicate(&one?, depth)).collect::<PyResult<Vec<_>>>();
    if let Some((comparison, _)) = Comparison::ALL.into_iter().find(|(_, name)| *name == word) {
        return Ok(Predicate::Compare(comparison, operand(value)?));
    }
    match word {
        "any_of" => {
            let operands = value.try_iter()?.map(|one| operand(&one?)).collect::<PyResult<_>>();
            Ok(Predicate::AnyOf(operands?))
        }
        "and" => Ok(Predicate::And(inner()?)),
        "or" => Ok(Predicate::Or(inner()?)),
        _ => {
            let message =
                format!("a condition must be one of eq, gt, ge, lt, le, any_of, and, or, not {word:?}");
            Err(PyValueError::new_err(message))
        }
    }
}

fn operand(value: &Bound<'_, PyAny>) -> PyResult<Operand> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Operand::Bool(value.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Operand::Text(text.extract()?));
    }
    if let Ok(whole) = value.extract::<i64>() {
        return Ok(Operand::Whole(whole.into()));
    }
    if let Ok(whole) = value.extract::<u64>() {
        return Ok(Operand::Whole(whole.into()));
    }
    let float = value.extract::<f64>();
    float
        .map(Operand::Float)
        .map_err(|_| PyTypeError::new_err("values can only be compared with a number, str or bool"))
}
