//! The signatures of operations, with which a language binding offers them as functions: their parameters, which of them
//! are required, and the defaults of the others. All of it follows from what the fields declare to serde.

use super::{Fields, Pages};
use crate::names::names_of;
use kith_types::OperationName;
use serde::{
    Serialize,
    de::{
        self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer, StrDeserializer},
    },
};
use serde_json::Value;
use std::{collections::BTreeSet, fmt, iter};

/// An operation as a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name of the operation.
    pub operation: OperationName,
    /// The answer of the operation, described in a line.
    pub about: &'static str,
    /// Its fields in their order, and then `limit` and `after` if its answer has pages.
    pub parameters: Vec<Parameter>,
}

/// A parameter of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name of the field.
    pub name: &'static str,
    /// Whether a query without it is refused.
    pub is_required: bool,
    /// The value that stands for a field that is left out; `None` if leaving it out means something of its own.
    pub default: Option<Value>,
    /// Whether it says which page of the answer is wanted, and is not one of the operation's own fields.
    pub is_page: bool,
}

impl Signature {
    /// The signature of the operation with these fields.
    pub(super) fn of<F>(operation: OperationName, about: &'static str) -> Self
    where
        F: Fields + Serialize + DeserializeOwned,
    {
        let names = names_of::<F>();
        let (required, least) = least_fields::<F>();
        let defaults = least.as_ref().and_then(|fields| serde_json::to_value(fields).ok());
        let default = |name: &str| match required.contains(name) {
            true => None,
            false => defaults.as_ref()?.get(name).cloned(),
        };
        let parameter = |&name: &&'static str| Parameter {
            name,
            is_required: required.contains(name),
            default: default(name),
            is_page: false,
        };
        let mut parameters: Vec<Parameter> = names.iter().map(parameter).collect();
        // Where no field is required by itself, one of several is.
        let pages =
            least.or_else(|| any_fields(names, &required)).map_or(Pages::None, |fields| fields.pages());
        for name in page_parameters(pages).iter().filter(|name| !names.contains(name)) {
            parameters.push(Parameter { name, is_required: false, default: None, is_page: true });
        }
        Self { operation, about: about.trim(), parameters }
    }
}

/// The parameters that say which page of an answer is wanted.
fn page_parameters(pages: Pages) -> &'static [&'static str] {
    match pages {
        Pages::None => &[],
        Pages::Ids | Pages::Edges | Pages::Associations => &["limit", "after"],
        Pages::First | Pages::Times => &["limit"],
    }
}

/// The names of the required fields, and the fields without any other; `None` if these are not enough.
fn least_fields<F: DeserializeOwned>() -> (BTreeSet<&'static str>, Option<F>) {
    let mut required = BTreeSet::new();
    loop {
        match F::deserialize(Samples { names: required.iter().copied().collect() }) {
            Ok(fields) => return (required, Some(fields)),
            Err(NoSample::Missing(name)) if required.insert(name) => {}
            Err(_) => return (required, None),
        }
    }
}

/// Fields with one more than the required ones.
fn any_fields<F: DeserializeOwned>(names: &[&'static str], required: &BTreeSet<&'static str>) -> Option<F> {
    let with = |name: &&'static str| {
        let names = required.iter().copied().chain(iter::once(*name));
        F::deserialize(Samples { names: names.collect() }).ok()
    };
    names.iter().find_map(with)
}

/// A deserializer of a struct with a sample in each of some fields.
struct Samples {
    names: Vec<&'static str>,
}

/// The reason why a struct cannot be made from samples.
#[derive(Debug)]
enum NoSample {
    /// It lacks a field.
    Missing(&'static str),
    /// Any other reason.
    Other,
}

impl fmt::Display for NoSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the samples do not fit")
    }
}

impl std::error::Error for NoSample {}

impl de::Error for NoSample {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }
}

impl<'de> Deserializer<'de> for Samples {
    type Error = NoSample;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSample> {
        visitor.visit_map(MapDeserializer::new(self.names.into_iter().map(|name| (name, Sample))))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A value of whatever type is wanted.
#[derive(Clone, Copy)]
struct Sample;

impl<'de> IntoDeserializer<'de, NoSample> for Sample {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The methods that pass a fixed value to the visitor.
macro_rules! fixed {
    ($($method:ident => $visit:ident($value:expr);)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoSample> {
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Sample {
    type Error = NoSample;

    fixed! {
        deserialize_any => visit_bool(false);
        deserialize_bool => visit_bool(false);
        deserialize_i8 => visit_u64(0);
        deserialize_i16 => visit_u64(0);
        deserialize_i32 => visit_u64(0);
        deserialize_i64 => visit_u64(0);
        deserialize_u8 => visit_u64(0);
        deserialize_u16 => visit_u64(0);
        deserialize_u32 => visit_u64(0);
        deserialize_u64 => visit_u64(0);
        deserialize_f32 => visit_f64(0.0);
        deserialize_f64 => visit_f64(0.0);
        deserialize_str => visit_str("");
        deserialize_string => visit_str("");
        deserialize_option => visit_some(Sample);
        deserialize_seq => visit_seq(SeqDeserializer::new(iter::empty::<Sample>()));
        deserialize_map => visit_map(MapDeserializer::new(iter::empty::<(&str, Sample)>()));
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoSample> {
        Samples { names: names.to_vec() }.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, NoSample> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoSample> {
        let first = variants.first().ok_or(NoSample::Other)?;
        visitor.visit_enum(StrDeserializer::new(first))
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use crate::Operation;

    #[test]
    fn signatures_say_what_is_required_and_what_stands_for_the_rest() {
        let text = |name: &str| {
            let signatures = Operation::signatures();
            let signature = signatures.iter().find(|it| it.operation.name() == name).expect("an operation");
            let parameter = |it: &super::Parameter| match (it.is_required, &it.default) {
                (true, _) => it.name.to_owned(),
                (false, Some(default)) => format!("{}={default}", it.name),
                (false, None) => format!("{}=?", it.name),
            };
            signature.parameters.iter().map(parameter).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text("connections"), "id limit=? after=?");
        assert_eq!(text("path"), "id to max=6");
        assert_eq!(text("suggest"), "id k=20");
        assert_eq!(text("common"), r#"id to kind=? return="ids" plan=? limit=? after=?"#);
        assert_eq!(text("degree"), "ids filter=?");
        assert_eq!(text("object_get"), "id=? ids=?");
        assert_eq!(text("object_find"), "type field value=? values=? limit=? after=?");
        assert_eq!(text("reciprocal"), "id limit=?");
        assert_eq!(text("assoc_time_range").rsplit(' ').next(), Some("limit=?"));
    }

    #[test]
    fn every_operation_has_a_signature_and_a_description() {
        let signatures = Operation::signatures();
        assert_eq!(signatures.iter().map(|it| it.operation).collect::<Vec<_>>(), Operation::NAMES);
        for signature in &signatures {
            assert!(!signature.about.is_empty(), "{}", signature.operation.name());
        }
    }
}
