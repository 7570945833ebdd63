//! The elements that have all entries of a map, for `mergeV` and `mergeE`.

use super::{by, context::Context, new::id_of};
use crate::{
    error::Result,
    graph::{Expansion, ListPart, VertexSearch, WantedProperties},
    semantics,
    value::{Direction, ElementId, Map, Symbol, Token, Value},
};

/// The vertices that have all entries of a map.
pub(super) async fn vertices(search: &Map, context: &Context<'_>) -> Result<Vec<Value>> {
    let candidates = match search.get(&Value::from(Token::Id)) {
        Some(id) => {
            let found = context.graph.vertices(vec![id_of(id)], WantedProperties::None).await?;
            found.into_iter().flatten().map(Value::Vertex).collect()
        }
        None => match super::scan::found(&sought(search), context).await? {
            Some(found) => found,
            None => super::scan::all_vertices(context).await?,
        },
    };
    let properties =
        context.properties(&candidates.iter().collect::<Vec<_>>(), &WantedProperties::All).await?;
    let fits = |(element, properties): &(Value, Vec<Value>)| fits(element, properties, search, context);
    Ok(candidates.into_iter().zip(properties).filter(fits).map(|(element, _)| element).collect())
}

/// A question to an index.
fn sought(search: &Map) -> VertexSearch {
    let label = search.get(&Value::from(Token::Label)).and_then(Value::as_text);
    let property = |(key, value): (&Value, &Value)| Some((key.as_text()?.into(), value.clone()));
    let properties = search.iter().filter(|(_, value)| **value != Value::Null).filter_map(property);
    let labels = label.map(Into::into).into_iter().collect();
    VertexSearch { labels, properties: properties.collect(), latest: true }
}

/// Whether an element has all entries of a map. Entries about the id and the ends have been looked at before.
fn fits(element: &Value, properties: &[Value], search: &Map, context: &Context<'_>) -> bool {
    search.iter().all(|(key, wanted)| match key {
        Value::Symbol(Symbol::Direction(_) | Symbol::Token(Token::Id)) => true,
        Value::Symbol(Symbol::Token(token)) => {
            by::token(*token, element, context).is_ok_and(|found| semantics::equal(&found, wanted))
        }
        key => properties.iter().any(|property| {
            let is_key = Value::String(super::property::key_of(property)) == *key;
            is_key && by::property_value(property).is_some_and(|value| semantics::equal(value, wanted))
        }),
    })
}

/// The edges that have all entries of a map.
pub(super) async fn edges(search: &Map, context: &Context<'_>) -> Result<Vec<Value>> {
    let end = |direction: Direction| search.get(&Value::from(direction)).map(id_of);
    let label = search.get(&Value::from(Token::Label)).map(crate::plan::keys::check_label).transpose()?;
    let candidates: Vec<Value> =
        match (search.get(&Value::from(Token::Id)), end(Direction::Out), end(Direction::In)) {
            (Some(id), _, _) => {
                let found = context.graph.edges(vec![id_of(id)]).await?;
                found.into_iter().flatten().map(Value::Edge).collect()
            }
            (None, Some(vertex), _) => expanded(vertex, Direction::Out, label, context).await?,
            (None, None, Some(vertex)) => expanded(vertex, Direction::In, label, context).await?,
            (None, None, None) => super::scan::all_edges(context).await?,
        };
    let properties =
        context.properties(&candidates.iter().collect::<Vec<_>>(), &WantedProperties::All).await?;
    let fits = |(element, properties): &(Value, Vec<Value>)| {
        let Value::Edge(edge) = element else { return false };
        let is_end = |direction, vertex: &Value| end(direction).is_none_or(|id| is_id(vertex, &id));
        is_end(Direction::Out, &edge.out_vertex.id)
            && is_end(Direction::In, &edge.in_vertex.id)
            && fits(element, properties, search, context)
    };
    Ok(candidates.into_iter().zip(properties).filter(fits).map(|(element, _)| element).collect())
}

pub(super) async fn expanded(
    vertex: ElementId,
    direction: Direction,
    label: Option<crate::plan::Label>,
    context: &Context<'_>,
) -> Result<Vec<Value>> {
    let labels = label.into_iter().collect();
    let lists = context
        .graph
        .expand(Expansion {
            vertices: vec![vertex],
            direction,
            labels,
            with_properties: true,
            tests: [].into(),
            top: None,
            part: ListPart::WHOLE,
        })
        .await?;
    Ok(lists.into_iter().flat_map(|list| list.edges).map(Value::Edge).collect())
}

/// Whether an id is the one that is wanted. A text stands for the id that is written so.
pub(super) fn is_id(id: &ElementId, wanted: &Value) -> bool {
    match wanted {
        Value::String(wanted) => id.to_string() == **wanted,
        wanted => semantics::equal(id, wanted),
    }
}
