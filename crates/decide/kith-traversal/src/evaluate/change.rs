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
    plan::{Kind, Label, PropertyGiven, StepArgument, keys, merge_maps},
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
    label: &StepArgument,
    properties: &[PropertyGiven],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let news = new_elements(label, properties, &batch, context).await?;
    added(&batch, news.into_iter().map(New::vertex), context).await
}

/// Makes the change of each traverser as often as its bulk says. Returns a traverser at each new element.
async fn added(
    batch: &[Traverser],
    changes: impl Iterator<Item = Mutation>,
    context: &Context<'_>,
) -> Result<Batch> {
    context.work.count_each(batch.iter().map(|traverser| traverser.bulk))?;
    let (mut mutations, mut from) = (Vec::new(), Vec::new());
    for (traverser, mutation) in batch.iter().zip(changes) {
        let count = usize::try_from(traverser.bulk).unwrap_or(0);
        mutations.extend(std::iter::repeat_n(mutation, count));
        from.extend(std::iter::repeat_n(traverser, count));
    }
    let elements = context.write_all(mutations).await?;
    let reached = |(traverser, element): (&Traverser, Option<Value>)| {
        Ok(Traverser { bulk: 1, ..traverser.to(existing(element)?) })
    };
    from.into_iter().zip(elements).map(reached).collect()
}

/// Makes one change of an element, which must exist. An error is about this change: those before it have been made.
pub(super) async fn written(mutation: Mutation, context: &Context<'_>) -> Result<Value> {
    let element = existing(context.write_all(vec![mutation]).await?.pop().flatten())?;
    context.graph.settle().await?;
    Ok(element)
}

/// The element that was changed, which must have existed.
fn existing(element: Option<Value>) -> Result<Value> {
    element.ok_or_else(|| GremlinError::bad("the element does not exist, so it cannot be changed"))
}

async fn add_edges(
    label: &StepArgument,
    ends: [Option<&StepArgument>; 2],
    properties: &[PropertyGiven],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let [from, to] =
        [vertices(ends[0], "from", &batch, context).await?, vertices(ends[1], "to", &batch, context).await?];
    let mut news = new_elements(label, properties, &batch, context).await?;
    if news.iter().any(|new| new.id.is_some()) && context.graph.ignores_edge_id() {
        news.iter_mut().for_each(|new| new.id = None);
    }
    let ends = from.into_iter().zip(to);
    let changes = news.into_iter().zip(ends);
    let changes = changes.map(|(new, (from, to))| new.edge(from, to, context.replaces_edges));
    added(&batch, changes, context).await
}

/// The vertices at one end of new edges: those that `from` or `to` names, or the traversers' own.
async fn vertices(
    end: Option<&StepArgument>,
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
    let mut settings = Vec::with_capacity(batch.len());
    for ((traverser, key), value) in batch.iter().zip(keys).zip(values) {
        let (key, value) = (result(key, "the key of a property")?, result(value, "the value of a property")?);
        settings.extend(setting(&traverser.value, property.cardinality, &key, value)?);
    }
    set_all(settings, context).await?;
    Ok(batch)
}

/// Makes changes of properties. Those that set one need an element that exists.
pub(super) async fn set_all(settings: Vec<Mutation>, context: &Context<'_>) -> Result<()> {
    let is_removal = |mutation: &Mutation| matches!(mutation, Mutation::RemoveProperty { .. });
    let removals: Vec<bool> = settings.iter().map(is_removal).collect();
    let written = context.write_all(settings).await?;
    let needed = written.into_iter().zip(removals).filter(|(_, is_removal)| !is_removal);
    needed.map(|(element, _)| element).try_for_each(|element| existing(element).map(drop))
}

/// The change that sets a property of an element that exists. Null removes it, unless it would have been one of several
/// values: then nothing changes.
pub(super) fn setting(
    element: &Value,
    cardinality: Option<Cardinality>,
    key: &Value,
    value: Value,
) -> Result<Option<Mutation>> {
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
            return Ok(None);
        }
        Value::Vertex(_) | Value::Edge(_) if is_removal => {
            Mutation::RemoveProperty { element: element.clone(), key }
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
    Ok(Some(mutation))
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
    let removals = batch.iter().map(|traverser| removal(&traverser.value)).collect::<Result<_>>()?;
    context.write_all(removals).await?;
    Ok(Batch::new())
}

fn removal(value: &Value) -> Result<Mutation> {
    Ok(match value {
        Value::Vertex(vertex) => Mutation::RemoveVertex { vertex: vertex.id.clone() },
        Value::Edge(edge) => Mutation::RemoveEdge { edge: edge.id.clone() },
        Value::VertexProperty(_) | Value::Property(_) => {
            let element = property::element(value)?;
            Mutation::RemoveProperty { element, key: property::key_of(value) }
        }
        other => {
            return Err(GremlinError::bad(format!(
                "The incoming object is not removable: {other}; drop() removes elements and properties"
            )));
        }
    })
}
