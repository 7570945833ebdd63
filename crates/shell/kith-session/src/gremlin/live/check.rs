//! Checks of a traversal of a live graph that need only the types of the graph, before anything is read or changed.

use super::{fields::WrittenType, labels};
use kith_gremlin::value::{Symbol, Token, Value};
use kith_live::GraphTypes;
use kith_query::QueryError;
use kith_schema::Schema;
use kith_traversal::plan::{Kind, PropertyGiven, StepArgument, TraversalPlan};
use kith_types::ErrorCode;
use std::sync::Arc;

/// Refuses a traversal that the types of the graph do not allow, as far as its steps name labels, keys and values.
pub(in crate::gremlin) fn check(plan: &TraversalPlan, types: &Arc<GraphTypes>) -> Result<(), QueryError> {
    plan.steps().into_iter().try_for_each(|step| match &step.kind {
        Kind::Hop(hop) | Kind::Degree(hop) | Kind::Reach(hop) | Kind::CountReached(hop) => {
            labels::lists(types, hop.direction, &hop.labels).map(drop)
        }
        Kind::AddVertex { label, properties } => match text_of(label) {
            Some(label) if !names(properties, Token::Label) => {
                check_properties(WrittenType::object(types, label)?, properties)
            }
            _ => Ok(()),
        },
        Kind::AddEdge { label, properties, .. } => match text_of(label) {
            Some(label) if !names(properties, Token::Label) => {
                labels::labelled(types, label)?;
                check_properties(WrittenType::association(types, label)?, properties)
            }
            _ => Ok(()),
        },
        Kind::SetProperty(property) => match text_of(&property.key) {
            Some(key) => check_key(types, key),
            None => Ok(()),
        },
        _ => Ok(()),
    })
}

fn text_of(given: &StepArgument) -> Option<&Arc<str>> {
    match given {
        StepArgument::Value(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Whether properties set the id or the label of a new element.
fn names(properties: &[PropertyGiven], token: Token) -> bool {
    let wanted = Value::Symbol(Symbol::Token(token));
    properties.iter().any(|property| matches!(&property.key, StepArgument::Value(key) if *key == wanted))
}

/// Checks the properties of a new element: all of them together if all are known, otherwise those that are.
fn check_properties(typed: WrittenType, properties: &[PropertyGiven]) -> Result<(), QueryError> {
    let mut known = Vec::with_capacity(properties.len());
    let mut are_all_known = true;
    for property in properties {
        match (&property.key, &property.value) {
            (StepArgument::Value(Value::String(_)), StepArgument::Value(Value::Null)) => {}
            (StepArgument::Value(Value::String(key)), StepArgument::Value(value)) => {
                known.retain(|(other, _)| other != key);
                known.push((Arc::clone(key), value.clone()));
            }
            (StepArgument::Value(Value::Symbol(_)), _) => {}
            _ => are_all_known = false,
        }
    }
    match are_all_known {
        true => typed.data(&known).map(drop),
        false => known.iter().try_for_each(|(key, value)| typed.json(key, value).map(drop)),
    }
}

/// Refuses a key that no type has.
fn check_key(types: &GraphTypes, key: &str) -> Result<(), QueryError> {
    let has = |schemas: &[Schema]| schemas.last().is_some_and(|schema| schema.index_of(key).is_some());
    let of_objects = types.objects.values().any(|kind| kind.open || has(&kind.schemas));
    let of_associations = || types.associations.values().any(|kind| kind.open || has(&kind.schemas));
    if types.open || of_objects || of_associations() {
        return Ok(());
    }
    Err(QueryError::Remote {
        code: ErrorCode::BadFields,
        message: format!("no type of the graph has a field {key:?}"),
        help: "`kith schema show --graph NAME` lists the fields of each type".to_owned(),
    })
}
