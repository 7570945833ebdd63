//! The labels and properties of new elements.

use super::{context::Context, nested, traverser::Traverser};
use crate::{
    error::{GremlinError, Result},
    graph::Mutation,
    plan::{Label, PropertyGiven, StepArgument, keys},
    value::{ElementId, Symbol, Token, Value},
};
use std::sync::Arc;

/// The properties of a new element, and the id and label among them.
#[derive(Clone, Debug, Default)]
pub(super) struct New {
    pub id: Option<ElementId>,
    pub label: Option<Label>,
    pub properties: Vec<(Label, Value)>,
}

impl New {
    /// The change that adds a vertex.
    pub fn vertex(self) -> Mutation {
        let Self { id, label, properties } = self;
        Mutation::AddVertex { id, label: label.unwrap_or_else(|| keys::VERTEX.into()), properties }
    }

    /// The change that adds an edge. `replaces` says whether it may take the place of one that is there.
    pub fn edge(self, out_vertex: ElementId, in_vertex: ElementId, replaces: bool) -> Mutation {
        let Self { id, label, properties } = self;
        let label = label.unwrap_or_else(|| keys::EDGE.into());
        Mutation::AddEdge { id, label, out_vertex, in_vertex, properties, replaces }
    }

    /// Adds a property, or sets the id or label.
    pub fn put(&mut self, key: &Value, value: Value) -> Result<()> {
        match (key, value) {
            (Value::String(key), value) => {
                keys::check_property(key)?;
                self.properties.retain(|(known, _)| known != key);
                if value != Value::Null {
                    self.properties.push((Arc::clone(key), value));
                }
            }
            (Value::Symbol(Symbol::Token(_)), Value::Null) => {
                return Err(GremlinError::bad("Value of T cannot be null"));
            }
            (Value::Symbol(Symbol::Token(Token::Id)), value) => self.id = Some(id_of(&value)),
            (Value::Symbol(Symbol::Token(Token::Label)), value) => {
                self.label = Some(keys::check_label(&value)?)
            }
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

/// The result of a traversal that stands for an argument, which must have one.
pub(super) fn result(value: Option<Value>, what: &str) -> Result<Value> {
    value.ok_or_else(|| GremlinError::bad(format!("the traversal that stands for {what} has no result")))
}

/// The properties of each traverser's new element.
pub(super) async fn new_elements(
    label: &StepArgument,
    properties: &[PropertyGiven],
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<New>> {
    let labels = nested::given(label, batch, context).await?;
    let mut all = vec![New::default(); batch.len()];
    for (new, label) in all.iter_mut().zip(labels) {
        new.label = Some(keys::check_label(&result(label, "a label")?)?);
    }
    for property in properties {
        let keys = nested::given(&property.key, batch, context).await?;
        let values = nested::given(&property.value, batch, context).await?;
        for ((new, key), value) in all.iter_mut().zip(keys).zip(values) {
            new.put(&result(key, "the key of a property")?, result(value, "the value of a property")?)?;
        }
    }
    Ok(all)
}
