//! Steps that change the graph.

use super::{
    context::Context,
    nested,
    new::{New, new_elements, result},
    property,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    graph::Mutation,
    plan::{Given, Kind, Label, PropertyGiven, keys, merge_maps},
    value::{Cardinality, ElementId, Symbol, Value},
};
use std::sync::Arc;

pub(super) async fn apply(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    match kind {
        Kind::AddVertex { label, properties } => add_vertices(label, properties, batch, context).await,
        Kind::AddEdge { label, from, to, properties } => {
            add_edges(label, [from.as_ref(), to.as_ref()], properties, batch, context).await
        }
        Kind::SetProperty(property) => set(property, batch, context).await,
        Kind::Drop => drop_all(batch, context).await,
        other => Err(GremlinError::bad(format!("{other:?} cannot be evaluated"))),
    }
}

async fn add_vertices(
    label: &Given,
    properties: &[PropertyGiven],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    context.count_each(batch.iter().map(|traverser| traverser.bulk))?;
    let mut reached = Batch::with_capacity(batch.len());
    for (traverser, new) in batch.iter().zip(new_elements(label, properties, &batch, context).await?) {
        for _ in 0..traverser.bulk {
            let vertex = add_vertex(new.clone(), context).await?;
            reached.push(Traverser { bulk: 1, ..traverser.to(vertex) });
        }
    }
    Ok(reached)
}

pub(super) async fn add_vertex(new: New, context: &Context<'_>) -> Result<Value> {
    let New { id, label, properties } = new;
    let label = label.unwrap_or_else(|| keys::VERTEX.into());
    written(Mutation::AddVertex { id, label, properties }, context).await
}

pub(super) async fn written(mutation: Mutation, context: &Context<'_>) -> Result<Value> {
    let element = context.write(mutation).await?;
    element.ok_or_else(|| GremlinError::bad("the element does not exist, so it cannot be changed"))
}

async fn add_edges(
    label: &Given,
    ends: [Option<&Given>; 2],
    properties: &[PropertyGiven],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let [from, to] =
        [vertices(ends[0], "from", &batch, context).await?, vertices(ends[1], "to", &batch, context).await?];
    let news = new_elements(label, properties, &batch, context).await?;
    context.count_each(batch.iter().map(|traverser| traverser.bulk))?;
    let mut reached = Batch::with_capacity(batch.len());
    for (((traverser, new), out_vertex), in_vertex) in batch.iter().zip(news).zip(from).zip(to) {
        for _ in 0..traverser.bulk {
            let edge = add_edge(new.clone(), out_vertex.clone(), in_vertex.clone(), context).await?;
            reached.push(Traverser { bulk: 1, ..traverser.to(edge) });
        }
    }
    Ok(reached)
}

pub(super) async fn add_edge(
    new: New,
    out_vertex: ElementId,
    in_vertex: ElementId,
    context: &Context<'_>,
) -> Result<Value> {
    let New { id, label, properties } = new;
    let label = label.unwrap_or_else(|| keys::EDGE.into());
    written(Mutation::AddEdge { id, label, out_vertex, in_vertex, properties }, context).await
}

/// The vertices at one end of new edges: those that `from` or `to` names, or the traversers' own.
async fn vertices(
    end: Option<&Given>,
    name: &str,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<ElementId>> {
    let values = match end {
        None => batch.iter().map(|traverser| Some(traverser.value.clone())).collect(),
        Some(given) => nested::given(given, batch, context).await?,
    };
    let id = |value: Option<Value>| match value {
        Some(Value::Vertex(vertex)) => Ok(vertex.id.clone()),
        Some(Value::Edge(_)) | None | Some(Value::Null) => Err(GremlinError::bad(format!(
            "The value given to addE().{name}() must resolve to a Vertex or the ID of a Vertex present in the graph. The provided value does not match any vertices in the graph"
        ))),
        Some(id) => Ok(id),
    };
    values.into_iter().map(id).collect()
}

/// `property` of elements that exist.
async fn set(property: &PropertyGiven, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let keys = nested::given(&property.key, &batch, context).await?;
    let values = nested::given(&property.value, &batch, context).await?;
    let mut reached = Batch::with_capacity(batch.len());
    for ((traverser, key), value) in batch.into_iter().zip(keys).zip(values) {
        let (key, value) = (result(key, "the key of a property")?, result(value, "the value of a property")?);
        set_one(&traverser.value, property.cardinality, &key, value, context).await?;
        reached.push(traverser);
    }
    Ok(reached)
}

/// Sets a property of an element that exists. Null removes it, unless it would have been one of several values.
pub(super) async fn set_one(
    element: &Value,
    cardinality: Option<Cardinality>,
    key: &Value,
    value: Value,
    context: &Context<'_>,
) -> Result<()> {
    merge_maps::check_cardinality(&value, cardinality)?;
    let key = changeable(key)?;
    let is_removal = value == Value::Null;
    let mutation = match element {
        Value::Edge(_) if cardinality.is_some() => {
            return Err(GremlinError::bad(format!(
                "Property cardinality can only be set for a Vertex but the traversal encountered an edge for key: {key}"
            )));
        }
        Value::Vertex(_) if is_removal && cardinality.is_some_and(|it| it != Cardinality::Single) => {
            return Ok(());
        }
        Value::Vertex(_) | Value::Edge(_) if is_removal => {
            let removal = Mutation::RemoveProperty { element: element.clone(), key };
            return context.write(removal).await.map(drop);
        }
        Value::Vertex(vertex) => {
            let cardinality = Cardinality::Single;
            Mutation::SetVertexProperty { vertex: vertex.id.clone(), cardinality, key, value }
        }
        Value::Edge(edge) => Mutation::SetEdgeProperty { edge: edge.id.clone(), key, value },
        Value::VertexProperty(_) => return Err(GremlinError::unsupported("a property of a property")),
        other => {
            let found = other.type_name();
            return Err(GremlinError::bad(format!(
                "property() needs an element, not a value of type {found}"
            )));
        }
    };
    written(mutation, context).await.map(drop)
}

/// The key of a property that can be changed.
fn changeable(key: &Value) -> Result<Label> {
    match key {
        Value::String(key) => keys::check_property(key).map(|()| Arc::clone(key)),
        Value::Symbol(Symbol::Token(token)) => {
            Err(GremlinError::bad(format!("T.{token} is immutable on existing elements")))
        }
        other => Err(GremlinError::bad(format!("{other} cannot be the key of a property"))),
    }
}

/// `drop`: removes elements and properties. Nothing passes.
async fn drop_all(batch: Batch, context: &Context<'_>) -> Result<Batch> {
    for traverser in batch {
        let mutation = match &traverser.value {
            Value::Vertex(vertex) => Mutation::RemoveVertex { vertex: vertex.id.clone() },
            Value::Edge(edge) => Mutation::RemoveEdge { edge: edge.id.clone() },
            Value::VertexProperty(_) | Value::Property(_) => {
                let element = property::element(&traverser.value)?;
                Mutation::RemoveProperty { element, key: property::key_of(&traverser.value) }
            }
            other => {
                let found = other;
                return Err(GremlinError::bad(format!(
                    "The incoming object is not removable: {found}; drop() removes elements and properties"
                )));
            }
        };
        context.write(mutation).await?;
    }
    Ok(Batch::new())
}
