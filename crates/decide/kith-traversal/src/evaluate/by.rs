//! The results of `by` for values.

use super::{context::Context, nested, traverser::Traverser};
use crate::{
    error::{GremlinError, Result},
    graph::WantedProperties,
    plan::{ByArgument, Label},
    value::{Column, Token, Value},
};
use std::sync::Arc;

/// The value of `by` for each traverser. `None` if it has none.
pub(super) async fn values(
    by: &ByArgument,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Value>>> {
    match by {
        ByArgument::Identity => Ok(batch.iter().map(|traverser| Some(traverser.value.clone())).collect()),
        ByArgument::Token(token) => {
            let all: Vec<&Value> = batch.iter().map(|traverser| &traverser.value).collect();
            Ok(tokens(*token, &all, context).await?.into_iter().map(Some).collect())
        }
        ByArgument::Column(column) => {
            batch.iter().map(|traverser| self::column(*column, &traverser.value).map(Some)).collect()
        }
        ByArgument::Key(key) => {
            let all: Vec<&Value> = batch.iter().map(|traverser| &traverser.value).collect();
            keyed(key, &all, context).await
        }
        ByArgument::Traversal(traversal) => nested::first(traversal, batch, context).await,
    }
}

/// The value of one of several `by`, which are used in turn, for each value. These have no path of their own.
pub(super) async fn in_turn(
    by: &[ByArgument],
    at: usize,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Value>>> {
    match by.len() {
        0 => values(&ByArgument::Identity, batch, context).await,
        count => values(&by[at % count], batch, context).await,
    }
}

/// The value of a key, of elements and maps.
async fn keyed(key: &Label, all: &[&Value], context: &Context<'_>) -> Result<Vec<Option<Value>>> {
    let wanted = WantedProperties::Keys([Arc::clone(key)].into());
    let properties = context.properties(all, &wanted).await?;
    let of = |(value, properties): (&&Value, Vec<Value>)| match value {
        // Unlike an element without the property, a map without the key has a value: null.
        Value::Map(map) => Ok(Some(map.get(&Value::String(Arc::clone(key))).cloned().unwrap_or_default())),
        Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) => {
            Ok(properties.first().and_then(property_value).cloned())
        }
        other => Err(GremlinError::bad(format!(
            "by({key:?}) needs an element or a map, not a value of type {}",
            other.type_name()
        ))),
    };
    all.iter().zip(properties).map(of).collect()
}

/// The value of a property.
pub(super) fn property_value(property: &Value) -> Option<&Value> {
    match property {
        Value::VertexProperty(property) => Some(&property.value),
        Value::Property(property) => Some(&property.value),
        _ => None,
    }
}

/// The members that elements have by nature.
pub(super) async fn tokens(token: Token, all: &[&Value], context: &Context<'_>) -> Result<Vec<Value>> {
    match token {
        Token::Label => context.learn_labels(all).await?,
        Token::Id => context.learn_ids(all).await?,
        Token::Key | Token::Value => {}
    }
    all.iter().map(|value| self::token(token, value, context)).collect()
}

/// The members that an element has by nature. The labels and ids of vertices must have been learned.
pub(super) fn token(token: Token, value: &Value, context: &Context<'_>) -> Result<Value> {
    let found = match (token, value) {
        (Token::Id, Value::Vertex(vertex)) => Some(context.shown_id(vertex)),
        (Token::Id, Value::Edge(edge)) => Some(context.shown_edge_id(edge)),
        (Token::Id, Value::VertexProperty(property)) => Some(property.id.clone()),
        (Token::Label, Value::Vertex(vertex)) => Some(Value::String(context.label(vertex))),
        (Token::Label, Value::Edge(edge)) => Some(Value::String(edge.label.clone())),
        (Token::Label | Token::Key, Value::VertexProperty(property)) => {
            Some(Value::String(property.key.clone()))
        }
        (Token::Key, Value::Property(property)) => Some(Value::String(property.key.clone())),
        (Token::Value, Value::VertexProperty(property)) => Some(property.value.clone()),
        (Token::Value, Value::Property(property)) => Some(property.value.clone()),
        _ => None,
    };
    found.ok_or_else(|| GremlinError::bad(format!("a value of type {} has no {token}", value.type_name())))
}

/// One half of the entries of a map, or of a path: its labels or its objects.
pub(super) fn column(column: Column, value: &Value) -> Result<Value> {
    match (column, value) {
        (Column::Keys, Value::Map(map)) => Ok(Value::Set(Arc::new(map.keys().cloned().collect()))),
        (Column::Values, Value::Map(map)) => Ok(Value::list(map.values().cloned().collect::<Vec<_>>())),
        (Column::Keys, Value::Entry(entry)) => Ok(entry.0.clone()),
        (Column::Values, Value::Entry(entry)) => Ok(entry.1.clone()),
        (Column::Keys, Value::Path(path)) => {
            let sets = path.labels.iter().map(|labels| Value::Set(Arc::new(labels.clone())));
            Ok(Value::list(sets.collect::<Vec<_>>()))
        }
        (Column::Values, Value::Path(path)) => Ok(Value::list(path.objects.clone())),
        (_, other) => {
            Err(GremlinError::bad(format!("a value of type {} has no {column}", other.type_name())))
        }
    }
}

/// An entry of a map as a value.
pub(super) fn entry(key: &Value, value: &Value) -> Value {
    Value::Entry(Arc::new((key.clone(), value.clone())))
}
