//! Steps that change the graph.

use super::{
    by,
    context::Context,
    nested, property,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    graph::Mutation,
    plan::{Given, Kind, Label, PropertyGiven},
    value::{Cardinality, ElementId, Symbol, Token, Value},
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

/// The properties of a new element, and the id and label among them.
#[derive(Clone, Debug, Default)]
pub(super) struct New {
    pub id: Option<ElementId>,
    pub label: Option<Label>,
    pub properties: Vec<(Label, Value)>,
}

impl New {
    /// Adds a property, or sets the id or label.
    pub fn put(&mut self, key: &Value, value: Value) -> Result<()> {
        match (key, value) {
            (Value::String(key), value) => self.properties.push((Arc::clone(key), value)),
            (Value::Symbol(Symbol::Token(Token::Id)), value) => self.id = Some(id_of(&value)),
            (Value::Symbol(Symbol::Token(Token::Label)), value) => self.label = Some(label_of(&value)?),
            (other, _) => {
                return Err(GremlinError::bad(format!("{other} cannot be the key of a property")));
            }
        }
        Ok(())
    }
}

/// The id that a value stands for.
pub(super) fn id_of(value: &Value) -> ElementId {
    match value {
        Value::Vertex(vertex) => vertex.id.clone(),
        Value::Edge(edge) => edge.id.clone(),
        other => other.clone(),
    }
}

pub(super) fn label_of(value: &Value) -> Result<Label> {
    match value {
        Value::String(label) if !label.is_empty() => Ok(Arc::clone(label)),
        Value::String(_) => Err(GremlinError::bad("a label cannot be empty")),
        other => {
            Err(GremlinError::bad(format!("a label is a string, not a value of type {}", other.type_name())))
        }
    }
}

/// What each traverser's new element gets.
async fn new_elements(
    label: &Given,
    properties: &[PropertyGiven],
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<New>> {
    let labels = nested::given(label, batch, context).await?;
    let mut all = vec![New::default(); batch.len()];
    for (new, label) in all.iter_mut().zip(labels) {
        let label = label.ok_or_else(|| GremlinError::bad("the traversal of the label has no result"))?;
        new.label = Some(label_of(&label)?);
    }
    for property in properties {
        let keys = nested::given(&property.key, batch, context).await?;
        let values = nested::given(&property.value, batch, context).await?;
        for ((new, key), value) in all.iter_mut().zip(keys).zip(values) {
            let key = key.ok_or_else(|| GremlinError::bad("the traversal of a key has no result"))?;
            if let Some(value) = value {
                new.put(&key, value)?;
            }
        }
    }
    Ok(all)
}

async fn add_vertices(
    label: &Given,
    properties: &[PropertyGiven],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
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
    let label = label.unwrap_or_else(|| "vertex".into());
    written(Mutation::AddVertex { id, label, properties }, context).await
}

pub(super) async fn written(mutation: Mutation, context: &Context<'_>) -> Result<Value> {
    let element = context.graph.write(mutation).await?;
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
    let label = label.unwrap_or_else(|| "edge".into());
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
        if let (Some(key), Some(value)) = (key, value) {
            set_one(&traverser.value, property.cardinality, &key, value, context).await?;
        }
        reached.push(traverser);
    }
    Ok(reached)
}

pub(super) async fn set_one(
    element: &Value,
    cardinality: Option<Cardinality>,
    key: &Value,
    value: Value,
    context: &Context<'_>,
) -> Result<()> {
    let Value::String(key) = key else {
        return Err(GremlinError::bad(format!("{key} of an element that exists cannot be changed")));
    };
    let key = Arc::clone(key);
    let mutation = match element {
        Value::Vertex(vertex) => {
            let cardinality = cardinality.unwrap_or(Cardinality::Single);
            Mutation::SetVertexProperty { vertex: vertex.id.clone(), cardinality, key, value }
        }
        Value::Edge(edge) if cardinality.is_none() => {
            Mutation::SetEdgeProperty { edge: edge.id.clone(), key, value }
        }
        Value::Edge(_) => return Err(GremlinError::bad("a property of an edge has no cardinality")),
        other => {
            let found = other.type_name();
            return Err(GremlinError::unsupported(format!("a property of a value of type {found}")));
        }
    };
    written(mutation, context).await.map(drop)
}

/// `drop`: removes elements and properties. Nothing passes.
async fn drop_all(batch: Batch, context: &Context<'_>) -> Result<Batch> {
    for traverser in batch {
        let mutation = match &traverser.value {
            Value::Vertex(vertex) => Mutation::RemoveVertex { vertex: vertex.id.clone() },
            Value::Edge(edge) => Mutation::RemoveEdge { edge: edge.id.clone() },
            Value::VertexProperty(_) | Value::Property(_) => {
                let element = by_element(&traverser.value)?;
                Mutation::RemoveProperty { element, key: property::key_of(&traverser.value) }
            }
            other => {
                let found = other.type_name();
                return Err(GremlinError::bad(format!(
                    "drop() removes elements and properties, not a value of type {found}"
                )));
            }
        };
        context.graph.write(mutation).await?;
    }
    Ok(Batch::new())
}

fn by_element(property: &Value) -> Result<Value> {
    let owner = match property {
        Value::VertexProperty(property) => property.vertex.clone().map(Value::Vertex),
        Value::Property(property) => property.element.clone(),
        _ => None,
    };
    let owner =
        owner.ok_or_else(|| GremlinError::bad("the property does not say to which element it belongs"))?;
    by::token(Token::Id, &owner).map(|_| owner)
}
