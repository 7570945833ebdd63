//! Changes of live graphs: each is one write, apart from the removal of a vertex, which removes its edges first.

use super::{
    LiveGraph,
    fields::{WrittenType, object_text},
    labels,
    reads::named_edge,
    rows::known_vertex,
    send::VERTEX_EXISTS,
};
use crate::gremlin::{
    ids::{number, number_id},
    rows::edge_of,
};
use kith_gremlin::{
    GremlinError,
    value::{Cardinality, ElementId, Value, Vertex},
};
use kith_live::{
    AssociationType, Conditions, GraphTypes, Inverse, Mutation as Write, ObjectFields, STALE_MAX,
};
use kith_query::QueryError;
use kith_traversal::graph::Mutation;
use kith_types::ErrorCode;
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

/// The properties of a new element.
type Properties = [(Arc<str>, Value)];

impl LiveGraph<'_> {
    /// Checks changes as far as this is possible without making them, and looks up the vertices that they name, in one fan-out.
    pub(super) async fn prepared(&self, mutations: &[Mutation]) -> Result<(), GremlinError> {
        mutations.iter().try_for_each(|mutation| self.check(mutation))?;
        self.check_each_once(mutations)?;
        let named: BTreeSet<u64> = mutations.iter().flat_map(vertices_of).collect();
        let objects = self.reads.objects(named.into_iter(), ObjectFields::None).await?;
        *self.kinds.lock() =
            objects.into_values().map(|object| (object.id, Arc::from(object.kind))).collect();
        mutations.iter().try_for_each(|mutation| self.check_with_vertices(mutation))
    }

    /// Checks a change against the types of the graph, whatever is stored.
    fn check(&self, mutation: &Mutation) -> Result<(), GremlinError> {
        match mutation {
            Mutation::AddVertex { id, label, properties } => {
                id.as_ref().map(|id| self.vertex_id(id)).transpose()?;
                self.vertex_data(label, properties).map(drop)
            }
            Mutation::AddEdge { id: Some(_), .. } => {
                Err(GremlinError::unsupported("an id that is given to an edge"))
            }
            Mutation::AddEdge { label, properties, .. } => self.edge_data(label, properties).map(drop),
            Mutation::SetVertexProperty { cardinality, .. } if *cardinality != Cardinality::Single => {
                Err(GremlinError::unsupported("more than one value of a key"))
            }
            Mutation::SetEdgeProperty { edge, key, value } => self.check_edge_field(edge, key, value),
            Mutation::RemoveProperty { element: Value::Edge(edge), key } => {
                self.check_edge_field(&edge.id, key, &Value::Null)
            }
            _ => Ok(()),
        }
    }

    /// Refuses changes that add the same element twice, so that nothing is changed before the second one is refused.
    fn check_each_once(&self, mutations: &[Mutation]) -> Result<(), GremlinError> {
        let types = self.reads.types();
        let (mut vertices, mut edges) = (HashSet::new(), HashSet::new());
        for mutation in mutations {
            let twice = match mutation {
                Mutation::AddVertex { id: Some(id), .. } => {
                    let is_new = number(id).is_none_or(|id| vertices.insert(id));
                    (!is_new).then(|| vertex_exists(format!("one step adds vertex {id} twice")))
                }
                Mutation::AddEdge { label, out_vertex, in_vertex, replaces: false, .. } => {
                    let ends = number(out_vertex).zip(number(in_vertex));
                    let is_new = ends.is_none_or(|ends| edges.insert(one_edge(&types, label, ends)));
                    let twice = || format!("one step adds edge {out_vertex}>{label}>{in_vertex} twice");
                    (!is_new).then(|| edge_exists(twice()))
                }
                _ => None,
            };
            if let Some(error) = twice {
                return Err(self.reads.fan_outs.error(error));
            }
        }
        Ok(())
    }

    /// Checks a change against the vertices that have been looked up.
    fn check_with_vertices(&self, mutation: &Mutation) -> Result<(), GremlinError> {
        match mutation {
            Mutation::AddEdge { out_vertex, in_vertex, .. } => {
                self.end(out_vertex)?;
                self.end(in_vertex).map(drop)
            }
            Mutation::SetVertexProperty { vertex, key, value, .. } => {
                self.vertex_field(vertex, key, value).map(drop)
            }
            Mutation::RemoveProperty { element: Value::Vertex(vertex), key } => {
                self.vertex_field(&vertex.id, key, &Value::Null).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Makes a change that has been checked.
    pub(super) async fn changed(&self, mutation: Mutation) -> Result<Option<Value>, GremlinError> {
        match mutation {
            Mutation::AddVertex { id, label, properties } => {
                self.add_vertex(id.as_ref(), &label, &properties).await.map(Some)
            }
            Mutation::AddEdge { label, out_vertex, in_vertex, properties, replaces, .. } => {
                self.add_edge(&label, [&out_vertex, &in_vertex], properties, replaces).await.map(Some)
            }
            Mutation::SetVertexProperty { vertex, key, value, .. } => {
                self.set_vertex_field(&vertex, &key, &value).await
            }
            Mutation::SetEdgeProperty { edge, key, value } => self.set_edge_field(&edge, &key, &value).await,
            Mutation::RemoveProperty { element: Value::Vertex(vertex), key } => {
                self.set_vertex_field(&vertex.id, &key, &Value::Null).await
            }
            Mutation::RemoveProperty { element: Value::Edge(edge), key } => {
                self.set_edge_field(&edge.id, &key, &Value::Null).await
            }
            Mutation::RemoveProperty { .. } => Err(GremlinError::unsupported("a property of a property")),
            Mutation::RemoveVertex { vertex } => self.remove_vertex(&vertex).await.map(|()| None),
            Mutation::RemoveEdge { edge } => self.remove_edge(&edge).await.map(|()| None),
        }
    }

    async fn add_vertex(
        &self,
        id: Option<&ElementId>,
        label: &Arc<str>,
        properties: &Properties,
    ) -> Result<Value, GremlinError> {
        let id = id.map(|id| self.vertex_id(id)).transpose()?;
        let data = Some(self.vertex_data(label, properties)?);
        let write = Write::AddObject { kind: label.to_string(), data, id, near: None, text_id: None };
        let done = self.writes.send(&self.reads, write, Conditions::default(), |done| match (id, done) {
            (Some(id), _) => format!("added vertex {id}"),
            (None, Some(done)) => format!("added vertex {}", done.id),
            (None, None) => format!("added a vertex {label:?}"),
        });
        let done = done.await?;
        self.scan.forget().await;
        Ok(Value::Vertex(Arc::new(Vertex::reference(number_id(done.id), Arc::clone(label)))))
    }

    async fn add_edge(
        &self,
        label: &Arc<str>,
        ends: [&ElementId; 2],
        properties: Vec<(Arc<str>, Value)>,
        replaces: bool,
    ) -> Result<Value, GremlinError> {
        let data = Some(self.edge_data(label, &properties)?);
        let [out_vertex, in_vertex] = [self.end(ends[0])?, self.end(ends[1])?];
        let (id1, id2) = (out_vertex.0, in_vertex.0);
        let write = Write::AddAssociation { id1, kind: label.to_string(), id2, time: None, data };
        let conditions = Conditions { if_exists: (!replaces).then_some(false), ..Conditions::default() };
        let sent = self
            .writes
            .send(&self.reads, write, conditions, |_| format!("added edge {id1}>{label}>{id2}"))
            .await;
        sent.map_err(|error| match error.code {
            ErrorCode::ConditionFailed => {
                let message = format!("edge {id1}>{label}>{id2} exists already");
                self.reads.fan_outs.error(edge_exists(message))
            }
            _ => error,
        })?;
        let [from, to] = [out_vertex, in_vertex].map(|(id, kind)| known_vertex(id, kind));
        Ok(Value::Edge(edge_of(label, from, to, properties)))
    }

    async fn set_vertex_field(
        &self,
        vertex: &ElementId,
        key: &str,
        value: &Value,
    ) -> Result<Option<Value>, GremlinError> {
        let Some((id, kind, json)) = self.vertex_field(vertex, key, value)? else { return Ok(None) };
        let data = object_text(vec![(key.to_owned(), json)]);
        let write = Write::UpdateObject { id, data };
        let done = self
            .writes
            .send(&self.reads, write, Conditions::default(), |_| format!("set {key:?} of vertex {id}"))
            .await?;
        Ok(done.existed.then(|| Value::Vertex(known_vertex(id, kind))))
    }

    async fn remove_edge(&self, edge: &ElementId) -> Result<(), GremlinError> {
        let types = self.reads.types();
        let Some((list, id1, id2)) = named_edge(&types, edge) else { return Ok(()) };
        let write = Write::DeleteAssociation { id1, kind: list.kind.name.clone(), id2 };
        self.writes
            .send(&self.reads, write, Conditions::default(), |_| format!("removed edge {edge}"))
            .await
            .map(drop)
    }

    /// The number of a new vertex.
    fn vertex_id(&self, id: &ElementId) -> Result<u64, GremlinError> {
        number(id).ok_or_else(|| {
            GremlinError::bad(format!(
                "{id} cannot be the id of a vertex: ids of live graphs are whole numbers from 0 to {}",
                u64::MAX
            ))
        })
    }

    fn vertex_data(&self, label: &str, properties: &Properties) -> Result<String, GremlinError> {
        self.reads
            .checked(WrittenType::object(&self.reads.types(), label).and_then(|typed| typed.data(properties)))
    }

    fn edge_data(&self, label: &str, properties: &Properties) -> Result<String, GremlinError> {
        // The name of an inverse type is refused with an error that names the label.
        self.reads.checked(labels::labelled(&self.reads.types(), label).map(drop))?;
        self.reads.checked(
            WrittenType::association(&self.reads.types(), label).and_then(|typed| typed.data(properties)),
        )
    }

    fn check_edge_field(&self, edge: &ElementId, key: &str, value: &Value) -> Result<(), GremlinError> {
        let types = self.reads.types();
        let Some((list, _, _)) = named_edge(&types, edge) else { return Ok(()) };
        self.edge_field(list.kind, key, value).map(drop)
    }

    /// A value of a field of an edge as it is stored.
    pub(super) fn edge_field(
        &self,
        kind: &AssociationType,
        key: &str,
        value: &Value,
    ) -> Result<String, GremlinError> {
        self.reads.checked(
            WrittenType::association(&self.reads.types(), &kind.name)
                .and_then(|typed| typed.json(key, value)),
        )
    }

    /// The number and the label of a vertex that has been looked up, and the value of a field of it as it is stored. `None` if
    /// there is no such vertex.
    fn vertex_field(
        &self,
        vertex: &ElementId,
        key: &str,
        value: &Value,
    ) -> Result<Option<(u64, Arc<str>, String)>, GremlinError> {
        let Some(id) = number(vertex) else { return Ok(None) };
        let Some(kind) = self.kinds.lock().get(&id).cloned() else { return Ok(None) };
        let json = WrittenType::object(&self.reads.types(), &kind).and_then(|typed| typed.json(key, value));
        Ok(Some((id, kind, self.reads.checked(json)?)))
    }

    /// The number and the label of a vertex that has been looked up and that a new edge needs.
    fn end(&self, vertex: &ElementId) -> Result<(u64, Arc<str>), GremlinError> {
        let id = number(vertex);
        let known = id.and_then(|id| Some((id, self.kinds.lock().get(&id).cloned()?)));
        known.ok_or_else(|| {
            let message = format!("there is no vertex {vertex}, so no edge can begin or end there");
            let help = format!(
                "a vertex that was written through another router shows within {} seconds, and at once with kith.ticket or \
                 kith.critical",
                STALE_MAX.as_secs()
            );
            self.reads.fan_outs.error(QueryError::Remote { code: ErrorCode::BadRequest, message, help })
        })
    }
}

/// The identity of a new edge. An edge of a symmetric type is the same in both directions.
fn one_edge<'a>(types: &GraphTypes, label: &'a str, (id1, id2): (u64, u64)) -> (&'a str, u64, u64) {
    let is_symmetric = types.association(label).is_some_and(|(_, kind)| kind.inverse == Inverse::Symmetric);
    if is_symmetric && id2 < id1 { (label, id2, id1) } else { (label, id1, id2) }
}

fn edge_exists(message: String) -> QueryError {
    let help = "use mergeE to add an edge only if it does not exist, property() to change one, or \
                g.with(\"kith.replace\", true) to replace it with all of its properties";
    QueryError::Remote { code: ErrorCode::ObjectExists, message, help: help.to_owned() }
}

fn vertex_exists(message: String) -> QueryError {
    QueryError::Remote { code: ErrorCode::ObjectExists, message, help: VERTEX_EXISTS.to_owned() }
}

/// The vertices that must be looked up before a change.
fn vertices_of(mutation: &Mutation) -> Vec<u64> {
    let ids = match mutation {
        Mutation::AddEdge { out_vertex, in_vertex, .. } => vec![out_vertex, in_vertex],
        Mutation::SetVertexProperty { vertex, .. } => vec![vertex],
        Mutation::RemoveProperty { element: Value::Vertex(vertex), .. } => vec![&vertex.id],
        _ => Vec::new(),
    };
    ids.into_iter().filter_map(number).collect()
}
