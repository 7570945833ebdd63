//! Reads the fields of an operation from a Python dictionary.

use kith_query::Operation;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyIterator, PyList, PyString, PyTuple},
};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor},
};
use std::fmt::{self, Display};

/// Makes an operation from its name and its fields. Fields that are `None` count as not given.
///
/// # Errors
/// `TypeError` if there is no such operation, if a field is missing or has a wrong type; `ValueError` if a field is not one
/// of the known words.
pub fn operation(name: &str, fields: &Bound<'_, PyDict>) -> PyResult<Operation> {
    Ok(Operation::deserialize(Fields { name, fields })?)
}

/// Makes a value of a Python object.
///
/// # Errors
/// As for [`operation`].
pub fn value<T: for<'de> Deserialize<'de>>(object: &Bound<'_, PyAny>) -> PyResult<T> {
    Ok(T::deserialize(FromPython::exact(object.clone()))?)
}

/// The reason why an object is not what is wanted.
#[derive(Debug)]
pub enum Unsuitable {
    /// It has another type, or does not have what it must have.
    Type(String),
    /// It is a word, but none of the known ones.
    Word { got: String, known: &'static [&'static str] },
    /// A word as before, as the value of a field.
    Value(String),
}

impl Unsuitable {
    /// The same reason, with the name of the field.
    fn within(self, field: &str) -> Self {
        match self {
            Self::Type(why) => Self::Type(format!("{field}: {why}")),
            Self::Word { got, known } => {
                let (last, first) = known.split_last().unwrap_or((&"", &[]));
                let known = [&first.join(", "), *last].map(str::to_owned).join(" or ");
                Self::Value(format!("{field} must be {known}, not {got:?}"))
            }
            Self::Value(why) => Self::Value(why),
        }
    }
}

impl Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(why) | Self::Value(why) => f.write_str(why),
            Self::Word { got, known } => write!(f, "{got:?} is not one of {}", known.join(", ")),
        }
    }
}

impl std::error::Error for Unsuitable {}

impl de::Error for Unsuitable {
    fn custom<T: Display>(message: T) -> Self {
        Self::Type(message.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Type(format!("{field} is missing"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::Word { got: variant.to_owned(), known: expected }
    }
}

impl From<PyErr> for Unsuitable {
    fn from(error: PyErr) -> Self {
        Self::Type(error.to_string())
    }
}

impl From<Unsuitable> for PyErr {
    fn from(why: Unsuitable) -> Self {
        match why {
            Unsuitable::Type(why) => PyTypeError::new_err(why),
            why => PyValueError::new_err(why.to_string()),
        }
    }
}

/// An operation and its fields, as serde sees an enum.
struct Fields<'a, 'py> {
    name: &'a str,
    fields: &'a Bound<'py, PyDict>,
}

impl<'de> Deserializer<'de> for Fields<'_, '_> {
    type Error = Unsuitable;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsuitable> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Fields<'_, '_> {
    type Error = Unsuitable;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Unsuitable> {
        let name: de::value::StrDeserializer<'_, Unsuitable> = self.name.into_deserializer();
        let unknown = |_| Unsuitable::Type(format!("there is no operation {:?}", self.name));
        Ok((seed.deserialize(name).map_err(unknown)?, self))
    }
}

impl<'de> VariantAccess<'de> for Fields<'_, '_> {
    type Error = Unsuitable;

    fn unit_variant(self) -> Result<(), Unsuitable> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Unsuitable> {
        seed.deserialize(FromPython::exact(self.fields.clone().into_any()))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Unsuitable> {
        FromPython::exact(self.fields.clone().into_any()).deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unsuitable> {
        FromPython::exact(self.fields.clone().into_any()).deserialize_struct("", names, visitor)
    }
}

/// The struct whose numbers are bounds, so that numbers of any type are taken for them.
const BOUNDS: &str = "ColumnFilter";

/// A deserializer of a Python object.
struct FromPython<'py> {
    object: Bound<'py, PyAny>,
    /// Whether a number that is no `float` may be rounded to one.
    rounds: bool,
}

impl<'py> FromPython<'py> {
    fn exact(object: Bound<'py, PyAny>) -> Self {
        Self { object, rounds: false }
    }

    /// Reads what has a form in JSON, such as a value of a field whose type only the cluster knows. `json` refuses lists that
    /// contain themselves. Whole numbers of other types than `int`, such as those of numpy, may be in lists and dictionaries.
    fn through_json<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsuitable> {
        let py = self.object.py();
        let named = PyDict::new(py);
        let object = &self.object;
        let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        if is_list || object.is_instance_of::<PyDict>() {
            named.set_item("default", py.import("operator")?.getattr("index")?)?;
        }
        let dumps = py.import("json")?.getattr("dumps")?;
        let text: String = dumps.call((self.object,), Some(&named))?.extract()?;
        let mut json = serde_json::Deserializer::from_reader(text.as_bytes());
        json.deserialize_any(visitor).map_err(de::Error::custom)
    }
}

/// The methods for types that pyo3 extracts.
macro_rules! extracted {
    ($($method:ident => $visit:ident: $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsuitable> {
            visitor.$visit(self.object.extract::<$type>()?)
        })*
    };
}

impl<'de> Deserializer<'de> for FromPython<'_> {
    type Error = Unsuitable;

    extracted! {
        deserialize_bool => visit_bool: bool;
        deserialize_i8 => visit_i8: i8;
        deserialize_i16 => visit_i16: i16;
        deserialize_i32 => visit_i32: i32;
        deserialize_i64 => visit_i64: i64;
        deserialize_u8 => visit_u8: u8;
        deserialize_u16 => visit_u16: u16;
        deserialize_u32 => visit_u32: u32;
        deserialize_u64 => visit_u64: u64;
        deserialize_f32 => visit_f32: f32;
        deserialize_f64 => visit_f64: f64;
        deserialize_char => visit_char: char;
        deserialize_str => visit_string: String;
        deserialize_string => visit_string: String;
        deserialize_identifier => visit_string: String;
        deserialize_byte_buf => visit_byte_buf: Vec<u8>;
        deserialize_bytes => visit_byte_buf: Vec<u8>;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsuitable> {
        let object = &self.object;
        if object.is_none() {
            visitor.visit_unit()
        } else if object.is_instance_of::<PyBool>() {
            self.deserialize_bool(visitor)
        } else if object.is_instance_of::<PyString>() {
            self.deserialize_string(visitor)
        } else if object.is_instance_of::<PyFloat>() {
            self.deserialize_f64(visitor)
        } else if let Ok(number) = object.extract::<u64>() {
            visitor.visit_u64(number)
        } else if let Ok(number) = object.extract::<i64>() {
            visitor.visit_i64(number)
        } else if self.rounds && object.hasattr("__float__")? {
            self.deserialize_f64(visitor)
        } else if object.is_instance_of::<PyInt>() {
            Err(Unsuitable::Type(format!("{object} does not fit into 64 bits")))
        } else {
            self.through_json(visitor)
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsuitable> {
        if self.object.is_none() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsuitable> {
        let object = &self.object;
        let is_text = object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>();
        if is_text || object.is_instance_of::<PyDict>() {
            let name = object.get_type().name()?;
            return Err(Unsuitable::Type(format!("'{name}' object is not a list")));
        }
        visitor.visit_seq(Items { items: object.try_iter()?, rounds: self.rounds })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Unsuitable> {
        let count = self.object.len()?;
        if count != length {
            return Err(Unsuitable::Type(format!("expected {length} values, but got {count}")));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Unsuitable> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unsuitable> {
        let dict = self.object.cast::<PyDict>().map_err(PyErr::from)?;
        let given = dict.iter().filter(|(_, value)| !value.is_none()).collect::<Vec<_>>();
        visitor.visit_map(Members { given: given.into_iter(), value: None, rounds: self.rounds })
    }

    /// Reads a struct from a dictionary, or from a tuple of all its fields.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unsuitable> {
        let this = Self { rounds: name == BOUNDS, ..self };
        match this.object.is_instance_of::<PyTuple>() {
            true => this.deserialize_tuple(names.len(), visitor),
            false => this.deserialize_map(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unsuitable> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unsuitable> {
        let word: String = self.object.extract()?;
        visitor.visit_enum(de::value::StringDeserializer::new(word))
    }

    serde::forward_to_deserialize_any! { i128 u128 unit unit_struct ignored_any }
}

/// The items of an iterable.
struct Items<'py> {
    items: Bound<'py, PyIterator>,
    rounds: bool,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Unsuitable;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Unsuitable> {
        let item = self.items.next().transpose()?;
        item.map(|object| seed.deserialize(FromPython { object, rounds: self.rounds })).transpose()
    }
}

/// The items of a dictionary.
struct Members<'py> {
    given: std::vec::IntoIter<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    value: Option<(String, Bound<'py, PyAny>)>,
    rounds: bool,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Unsuitable;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Unsuitable> {
        let Some((key, value)) = self.given.next() else { return Ok(None) };
        self.value = Some((key.extract()?, value));
        seed.deserialize(FromPython::exact(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Unsuitable> {
        let (name, object) =
            self.value.take().ok_or_else(|| Unsuitable::Type("a value came before its key".to_owned()))?;
        let value = FromPython { object, rounds: self.rounds };
        seed.deserialize(value).map_err(|why| why.within(&name))
    }
}
