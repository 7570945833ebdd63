//! Makes plain Python values of answers to operations: structs and maps become dictionaries, tuples tuples, and other
//! sequences lists.

use kith_query::{AnswerView, Json};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};
use serde::{
    Serialize, Serializer,
    ser::{self, Error, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple},
};
use std::fmt::{self, Display};

/// Converts an answer. An answer of one member becomes the value of that member.
///
/// # Errors
/// `ValueError` if the cluster sent text that is not JSON.
pub fn answer(py: Python<'_>, answer: &AnswerView) -> PyResult<Py<PyAny>> {
    let value = answer.serialize(ToPython(py))?;
    match value.cast::<PyDict>() {
        Ok(members) if members.len() == 1 => Ok(members.values().get_item(0)?.unbind()),
        _ => Ok(value.unbind()),
    }
}

/// A serializer whose output is a Python object.
#[derive(Clone, Copy)]
pub struct ToPython<'py>(pub Python<'py>);

type Object<'py> = Result<Bound<'py, PyAny>, PythonError>;
type Unused<'py> = Impossible<Bound<'py, PyAny>, PythonError>;

/// The methods that convert a Rust value as it is.
macro_rules! as_it_is {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Object<'py> {
            Ok(value.into_bound_py_any(self.0)?)
        })*
    };
}

/// The methods for what no answer has.
macro_rules! unused {
    ($($method:ident($($type:ty),*) -> $output:ty;)*) => {
        $(fn $method(self, $(_: $type),*) -> Result<$output, PythonError> {
            Err(PythonError::custom(concat!(stringify!($method), " has no form in Python")))
        })*
    };
}

impl<'py> Serializer for ToPython<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = PythonError;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeTupleStruct = Unused<'py>;
    type SerializeTupleVariant = Unused<'py>;
    type SerializeMap = Members<'py>;
    type SerializeStruct = Members<'py>;
    type SerializeStructVariant = Unused<'py>;

    as_it_is! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8]
    }

    unused! {
        serialize_tuple_struct(&'static str, usize) -> Unused<'py>;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Unused<'py>;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Unused<'py>;
        serialize_unit_struct(&'static str) -> Bound<'py, PyAny>;
    }

    fn serialize_unit(self) -> Object<'py> {
        Ok(self.0.None().into_bound(self.0))
    }

    fn serialize_none(self) -> Object<'py> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Object<'py> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Object<'py> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Object<'py> {
        if name != Json::NAME {
            return value.serialize(self);
        }
        let text = serde_json::to_string(value).map_err(PythonError::custom)?;
        let loaded = self.0.import("json")?.call_method1("loads", (text,));
        loaded.map_err(|why| PythonError::custom(format!("the cluster sent fields that are not JSON: {why}")))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Object<'py> {
        let mut members = self.serialize_map(Some(1))?;
        members.serialize_entry(variant, value)?;
        SerializeMap::end(members)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Items<'py>, PythonError> {
        Ok(Items { python: self, items: Vec::with_capacity(length.unwrap_or(0)) })
    }

    fn serialize_tuple(self, length: usize) -> Result<Items<'py>, PythonError> {
        self.serialize_seq(Some(length))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'py>, PythonError> {
        Ok(Members { python: self, members: PyDict::new(self.0), key: None })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'py>, PythonError> {
        self.serialize_map(None)
    }
}

/// The items of a list or tuple.
pub struct Items<'py> {
    python: ToPython<'py>,
    items: Vec<Bound<'py, PyAny>>,
}

/// The members of a dictionary.
pub struct Members<'py> {
    python: ToPython<'py>,
    members: Bound<'py, PyDict>,
    key: Option<Bound<'py, PyAny>>,
}

impl<'py> SerializeSeq for Items<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = PythonError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), PythonError> {
        self.items.push(value.serialize(self.python)?);
        Ok(())
    }

    fn end(self) -> Object<'py> {
        Ok(PyList::new(self.python.0, self.items)?.into_any())
    }
}

impl<'py> SerializeTuple for Items<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = PythonError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), PythonError> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Object<'py> {
        Ok(PyTuple::new(self.python.0, self.items)?.into_any())
    }
}

impl<'py> SerializeMap for Members<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = PythonError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), PythonError> {
        self.key = Some(key.serialize(self.python)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), PythonError> {
        let key = self.key.take().ok_or_else(|| PythonError::custom("a value came before its key"))?;
        Ok(self.members.set_item(key, value.serialize(self.python)?)?)
    }

    fn end(self) -> Object<'py> {
        Ok(self.members.into_any())
    }
}

impl<'py> SerializeStruct for Members<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = PythonError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), PythonError> {
        self.serialize_entry(name, value)
    }

    fn end(self) -> Object<'py> {
        SerializeMap::end(self)
    }
}

/// An exception, as an error of serde.
#[derive(Debug)]
pub struct PythonError(PyErr);

impl Display for PythonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for PythonError {}

impl ser::Error for PythonError {
    fn custom<T: Display>(message: T) -> Self {
        Self(PyValueError::new_err(message.to_string()))
    }
}

impl From<PyErr> for PythonError {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<PythonError> for PyErr {
    fn from(raised: PythonError) -> Self {
        raised.0
    }
}
