//! Tests of objects and associations by their fields, for traversals: what does not pass need not leave the node that holds it.

use crate::{Data, ElementPart, ElementTest, FieldOrder, FieldsFault, GraphTypes, TypeId, field_values};
use kith_gremlin::{
    property::Properties,
    semantics::{self, Test},
    value::Value,
};
use kith_schema::Schema;
use kith_types::ErrorCode;
use serde_json::{Map, Value as Json};
use std::cmp::Ordering;
use thiserror::Error;

/// A test that cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct UntestableElement {
    /// Why.
    pub code: ErrorCode,
    /// What is wrong.
    pub message: String,
}

/// Tests of elements, and an order of those that pass.
#[derive(Clone, Debug)]
pub struct ElementTests {
    tests: Vec<(ElementPart, Test)>,
    order: Option<FieldOrder>,
}

/// What tests look at in one element.
#[derive(Clone, Debug)]
pub struct TestedValues {
    /// The value for each test; `None` if the element does not have it.
    values: Vec<Option<Value>>,
    /// The value to sort by.
    key: Option<Value>,
}

impl ElementTests {
    /// Prepares tests. `O(n)`.
    ///
    /// # Errors
    /// A predicate cannot be read.
    pub fn new(tests: &[ElementTest], order: Option<&FieldOrder>) -> Result<Self, UntestableElement> {
        let test = |test: &ElementTest| {
            let predicate = Test::from_bytes(&test.predicate);
            let predicate =
                predicate.map_err(|error| UntestableElement { code: error.code, message: error.message })?;
            Ok((test.part.clone(), predicate))
        };
        Ok(Self { tests: tests.iter().map(test).collect::<Result<_, _>>()?, order: order.cloned() })
    }

    /// Whether every element passes, and none comes before another.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty() && self.order.is_none()
    }

    /// Whether there is an order.
    pub fn has_order(&self) -> bool {
        self.order.is_some()
    }

    /// What the tests look at in an element with the fields of a record.
    ///
    /// # Errors
    /// [`FieldsFault`] if the type does not exist, or the record cannot be read.
    pub fn look(&self, types: &GraphTypes, kind: TypeId, data: &Data) -> Result<TestedValues, FieldsFault> {
        let fields = ElementFields::of(types, kind, data)?;
        let name = types.objects.get(&kind).map(|kind| &*kind.name);
        let name = name.or(types.associations.get(&kind).map(|kind| &*kind.name));
        let value = |part: &ElementPart| match part {
            ElementPart::Type => name.map(Value::text),
            ElementPart::Field(name) => fields.value(name),
        };
        Ok(TestedValues {
            values: self.tests.iter().map(|(part, _)| value(part)).collect(),
            key: self.order.as_ref().and_then(|order| fields.value(&order.field)),
        })
    }

    /// Whether an element passes all tests and, if there is an order, has a place in it.
    ///
    /// # Errors
    /// A regular expression meets a text that is too long for it.
    pub fn pass(&self, tested: &TestedValues) -> Result<bool, UntestableElement> {
        for ((_, test), value) in self.tests.iter().zip(&tested.values) {
            let holds = value.as_ref().map_or(Ok(false), |value| test.holds(value));
            if !holds.map_err(|error| UntestableElement { code: error.code, message: error.message })? {
                return Ok(false);
            }
        }
        Ok(self.order.is_none() || tested.key.is_some())
    }

    /// The order of two elements that pass.
    pub fn order(&self, a: &TestedValues, b: &TestedValues) -> Ordering {
        let (Some(order), Some(first), Some(second)) = (&self.order, &a.key, &b.key) else {
            return Ordering::Equal;
        };
        let ordering = semantics::order(first, second);
        if order.descending { ordering.reverse() } else { ordering }
    }
}

/// The fields of one element.
enum ElementFields<'t> {
    Open(Properties),
    Declared(Option<&'t Schema>, Map<String, Json>),
}

impl<'t> ElementFields<'t> {
    fn of(types: &'t GraphTypes, kind: TypeId, data: &Data) -> Result<Self, FieldsFault> {
        let text = types.decode(kind, data)?;
        let (open, schemas) = match (types.objects.get(&kind), types.associations.get(&kind)) {
            (Some(kind), _) => (kind.open, &kind.schemas[..]),
            (None, Some(kind)) => (kind.open, &kind.schemas[..]),
            (None, None) => return Err(FieldsFault::NoType(kind)),
        };
        Ok(match open {
            true => Self::Open(Properties::from_json(&text)?),
            // `decode` has just written it.
            false => Self::Declared(schemas.last(), serde_json::from_str(&text).unwrap_or_default()),
        })
    }

    /// The value of a field as Gremlin shows it; `None` if there is none, or it is null.
    fn value(&self, name: &str) -> Option<Value> {
        match self {
            Self::Open(properties) => properties.get(name).filter(|value| **value != Value::Null).cloned(),
            Self::Declared(schema, fields) => {
                let schema = (*schema)?;
                let field = &schema.fields()[schema.index_of(name)?];
                field_values::to_gremlin(field.field_type(), fields.get(name)?)
            }
        }
    }
}
