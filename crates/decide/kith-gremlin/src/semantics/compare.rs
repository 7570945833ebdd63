//! The values that can be compared, and their comparison.

use super::{
    number::Number,
    order::{Family, family, order, parts, sequences},
};
use crate::value::Value;
use std::cmp::Ordering;

/// The order of two values as the predicates `lt`, `lte`, `gt` and `gte` see it; `None` if they cannot be compared.
///
/// Values can be compared if they are of one type, or both numbers. NaN cannot be compared with anything. Collections, paths,
/// elements and properties are compared by their parts, as [`order`] does, up to the first pair that differs or cannot be
/// compared. Null can be compared with null only.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    let shared = family(a);
    if shared != family(b) {
        return None;
    }
    match shared {
        Family::Number if [a, b].into_iter().filter_map(Number::of).any(Number::is_nan) => None,
        Family::Null
        | Family::Boolean
        | Family::Number
        | Family::DateTime
        | Family::String
        | Family::Uuid => Some(order(a, b)),
        Family::Vertex
        | Family::Edge
        | Family::VertexProperty
        | Family::Property
        | Family::Path
        | Family::Set
        | Family::List
        | Family::Map
        | Family::Entry => sequences(&parts(a), &parts(b), compare),
        Family::Other => compare_others(a, b),
    }
}

/// Values of Java types that have an order of their own are compared by it; others are at most equal.
fn compare_others(a: &Value, b: &Value) -> Option<Ordering> {
    use Value::*;
    match (a, b) {
        (Char(_), Char(_))
        | (Duration { .. }, Duration { .. })
        | (Binary(_), Binary(_))
        | (Class(_), Class(_)) => Some(order(a, b)),
        (Symbol(x), Symbol(y)) if x.type_name() == y.type_name() => Some(order(a, b)),
        (a, b) => (a == b).then_some(Ordering::Equal),
    }
}
