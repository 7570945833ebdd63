//! The fields of a write, which are a Python dictionary.

use pyo3::{conversion::FromPyObjectOwned, exceptions::PyTypeError, prelude::*, types::PyDict};

/// The fields of a write.
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
}
