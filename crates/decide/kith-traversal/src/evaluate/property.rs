//! Steps from an element to what it has.

use super::{
    by,
    context::Context,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    graph::WantedProperties,
    plan::{ByArgument, Kind, Label, PropertyMap},
    value::{Direction, Map, Symbol, Token, Value, Vertex},
};
use std::sync::Arc;

pub(super) async fn apply(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    match kind {
        Kind::Token(token) => {
            let all: Vec<&Value> = batch.iter().map(|traverser| &traverser.value).collect();
            let values = by::tokens(*token, &all, context).await?;
            Ok(batch.iter().zip(values).map(|(traverser, value)| traverser.to(value)).collect())
        }
        Kind::Properties { keys, is_value } => properties(keys, *is_value, batch, context).await,
        Kind::PropertyMap(map) => property_map(map, batch, context).await,
        Kind::ElementMap { keys } => element_map(keys, batch, context).await,
        _ => batch.iter().map(|traverser| Ok(traverser.to(element(&traverser.value)?))).collect(),
    }
}

/// The properties of each traverser's element.
async fn of_elements(keys: &[Label], batch: &[Traverser], context: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let elements: Vec<&Value> = batch.iter().map(|traverser| &traverser.value).collect();
    let is_element =
        |value: &&&Value| matches!(value, Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_));
    if let Some(other) = elements.iter().find(|value| !is_element(value)) {
        return Err(GremlinError::bad(format!(
            "only elements have properties, not a value of type {}",
            other.type_name()
        )));
    }
    let wanted = if keys.is_empty() { WantedProperties::All } else { WantedProperties::Keys(keys.into()) };
    context.properties(&elements, &wanted).await
}

async fn properties(keys: &[Label], is_value: bool, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let all = of_elements(keys, &batch, context).await?;
    let mut reached = Batch::new();
    for (traverser, properties) in batch.iter().zip(all) {
        context.work.room_for(properties.len())?;
        for property in properties {
            let value =
                if is_value { by::property_value(&property).cloned().unwrap_or_default() } else { property };
            reached.push(traverser.to(value));
        }
    }
    Ok(reached)
}

/// `valueMap` and `propertyMap`. A key of a vertex has a list of values, a key of another element one.
async fn property_map(map: &PropertyMap, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let all = of_elements(&map.keys, &batch, context).await?;
    let elements: Vec<&Value> = batch.iter().map(|traverser| &traverser.value).collect();
    if map.with_label {
        context.learn_labels(&elements).await?;
    }
    if map.with_id {
        context.learn_ids(&elements).await?;
    }
    drop(elements);
    let mut reached = Batch::with_capacity(batch.len());
    for (traverser, properties) in batch.iter().zip(all) {
        let mut entries = tokens(map, &traverser.value, context)?;
        let is_vertex = matches!(traverser.value, Value::Vertex(_));
        for property in properties {
            let key = Value::String(key_of(&property));
            let value = match map.is_value {
                true => by::property_value(&property).cloned().unwrap_or_default(),
                false => property,
            };
            match (is_vertex, entries.get_mut(&key)) {
                (true, Some(Value::List(values))) => Arc::make_mut(values).push(value),
                (true, _) => drop(entries.insert(key, Value::list([value]))),
                (false, _) => drop(entries.insert(key, value)),
            }
        }
        if let Some(by) = &map.by {
            entries = modulated(by, entries, context).await?;
        }
        reached.push(traverser.to(Value::Map(Arc::new(entries))));
    }
    Ok(reached)
}

/// The id and the label of an element, or of a property, as entries of a map.
fn tokens(map: &PropertyMap, element: &Value, context: &Context<'_>) -> Result<Map> {
    let mut entries = Map::new();
    let mut put = |token: Token| -> Result<()> {
        entries.insert(token.into(), by::token(token, element, context)?);
        Ok(())
    };
    let is_property = matches!(element, Value::VertexProperty(_));
    if map.with_id {
        put(Token::Id)?;
    }
    if map.with_key && is_property {
        put(Token::Key)?;
    }
    if map.with_value && is_property {
        put(Token::Value)?;
    }
    if map.with_label && !is_property {
        put(Token::Label)?;
    }
    Ok(entries)
}

/// The entries of a map, each value as `by` makes it. Entries without such a value are left out.
async fn modulated(by: &ByArgument, entries: Map, context: &Context<'_>) -> Result<Map> {
    let batch: Batch = entries.values().map(|value| context.traverser(value.clone())).collect();
    let is_token = |key: &Value| matches!(key, Value::Symbol(Symbol::Token(_)));
    let values = by::values(by, &batch, context).await?;
    let one = |((key, old), value): ((Value, Value), Option<Value>)| {
        if is_token(&key) { Some((key, old)) } else { value.map(|value| (key, value)) }
    };
    Ok(entries.into_iter().zip(values).filter_map(one).collect())
}

/// `elementMap`: what an element has by nature, its ends if it is an edge, and its properties.
async fn element_map(keys: &[Label], batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let all = of_elements(keys, &batch, context).await?;
    context.learn_all(batch.iter().flat_map(|traverser| vertices_of(&traverser.value)).collect()).await?;
    let mut reached = Batch::with_capacity(batch.len());
    for (traverser, properties) in batch.iter().zip(all) {
        let element = &traverser.value;
        let mut entries = Map::new();
        let tokens: &[Token] = match element {
            Value::VertexProperty(_) => &[Token::Id, Token::Key, Token::Value],
            _ => &[Token::Id, Token::Label],
        };
        for token in tokens {
            entries.insert((*token).into(), by::token(*token, element, context)?);
        }
        if let Value::Edge(edge) = element {
            for (direction, vertex) in [(Direction::In, &edge.in_vertex), (Direction::Out, &edge.out_vertex)]
            {
                let id = (Token::Id.into(), context.shown_id(vertex));
                let label = (Token::Label.into(), Value::String(context.label(vertex)));
                entries.insert(direction.into(), Value::Map(Arc::new(Map::from_iter([id, label]))));
            }
        }
        for property in properties {
            let value = by::property_value(&property).cloned().unwrap_or_default();
            entries.insert(Value::String(key_of(&property)), value);
        }
        reached.push(traverser.to(Value::Map(Arc::new(entries))));
    }
    Ok(reached)
}

/// The vertices whose labels and ids are in the map of an element.
fn vertices_of(element: &Value) -> Vec<Arc<Vertex>> {
    match element {
        Value::Vertex(vertex) => vec![Arc::clone(vertex)],
        Value::Edge(edge) => vec![Arc::clone(&edge.out_vertex), Arc::clone(&edge.in_vertex)],
        _ => Vec::new(),
    }
}

pub(super) fn key_of(property: &Value) -> Label {
    match property {
        Value::VertexProperty(property) => property.key.clone(),
        Value::Property(property) => property.key.clone(),
        _ => Label::from(""),
    }
}

/// The element that has a property.
pub(super) fn element(property: &Value) -> Result<Value> {
    let owner = match property {
        Value::VertexProperty(property) => property.vertex.clone().map(Value::Vertex),
        Value::Property(property) => property.element.clone(),
        _ => None,
    };
    owner.ok_or_else(|| {
        GremlinError::bad(format!(
            "a property with its element is needed, not a value of type {}",
            property.type_name()
        ))
    })
}
