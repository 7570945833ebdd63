//! The fields of an operation, which are a Python dictionary.

use kith_query::{ColumnFilter, EdgeCursor, NotACursor};
use kith_schema::ColumnNumber;
use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyDict,
};

/// The fields of a query or a write.
pub struct Fields<'a, 'py>(pub &'a Bound<'py, PyDict>);

impl<'py> Fields<'_, 'py> {
    /// Returns the value of a field; `None` if it is left out or `None`.
    pub fn may<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: FromPyObjectOwned<'py>,
    {
        let given = self.0.get_item(name)?.filter(|value| !value.is_none());
        let taken = given.map(|value| value.extract::<T>().map_err(Into::into));
        taken.transpose().map_err(|why: PyErr| PyTypeError::new_err(format!("{name}: {why}")))
    }

    /// Returns the value of a required field.
    ///
    /// # Errors
    /// `TypeError` if it is missing or has another type.
    pub fn must<T>(&self, name: &str) -> PyResult<T>
    where
        T: FromPyObjectOwned<'py>,
    {
        self.may(name)?.ok_or_else(|| PyTypeError::new_err(format!("{name} is missing")))
    }

    /// Returns the column filter in a field, which is given as `(column, low, high)`. A bound that is `None` is open.
    pub fn filter(&self, name: &str) -> PyResult<Option<ColumnFilter>> {
        let range = self.may::<(String, Option<Number>, Option<Number>)>(name)?;
        Ok(range.map(|(column, low, high)| ColumnFilter {
            column,
            low: low.map(Into::into),
            high: high.map(Into::into),
        }))
    }

    /// Returns the cursor in a field, which is the `after` of an earlier answer.
    pub fn cursor(&self, name: &str) -> PyResult<Option<EdgeCursor>> {
        let cursor = self.may::<String>(name)?.map(|text| text.parse());
        cursor.transpose().map_err(|why: NotACursor| PyValueError::new_err(why.to_string()))
    }

    /// Returns the value of a field, or `default` if it is left out or `None`.
    pub fn or<T>(&self, name: &str, default: T) -> PyResult<T>
    where
        T: FromPyObjectOwned<'py>,
    {
        Ok(self.may(name)?.unwrap_or(default))
    }
}

/// A number of a column.
#[derive(FromPyObject)]
enum Number {
    Unsigned(u64),
    Signed(i64),
    Floating(f64),
}

impl From<Number> for ColumnNumber {
    fn from(number: Number) -> Self {
        match number {
            Number::Unsigned(number) => ColumnNumber::U64(number),
            Number::Signed(number) => ColumnNumber::I64(number),
            Number::Floating(number) => ColumnNumber::F64(number),
        }
    }
}
