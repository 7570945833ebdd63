//! Changes of live graphs: each is one write, apart from the removal of a vertex, which removes its edges first. Writes that add
//! elements, or set properties of vertices, wait in a queue until a read has to show them, so that many are sent at once.

use super::{
    LiveGraph,
    fields::{WrittenType, object_text},
    ids::{VertexName, shown, text_id},
    labels,
    queue::{QueuedChange, QueuedWrite},
    reads::named_edge,
    rows::vertex_of,
    send::{VERTEX_EXISTS, edge_exists},
    settle,
};
use crate::gremlin::{
    ids::{number, number_id},
    rows::edge_of,
};
use kith_gremlin::{
    GremlinError,
    value::{Cardinality, ElementId, Value, Vertex, shown_edge_id},
};
use kith_live::{
    AssociationType, Conditions, GraphTypes, Inverse, Mutation as Write, ObjectAnswer, ObjectFields,
    STALE_MAX, TextId, TypeKind, new_object_id,
};
use kith_query::QueryError;
use kith_traversal::graph::{Mutation, WantedProperties};
use kith_types::ErrorCode;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The id that a new vertex is given.
enum NewId {
    Number(u64),
    Text(TextId),
}

/// The properties of a new element.
type Properties = [(Arc<str>, Value)];

impl LiveGraph<'_> {
    /// Checks changes as far as this is possible without making them, and looks up the vertices that they name, in one fan-out.
    pub(super) async fn prepared(&self, mutations: &[Mutation]) -> Result<(), GremlinError> {
        mutations.iter().try_for_each(|mutation| self.check(mutation))?;
        self.check_each_once(mutations)?;
        let ids: Vec<ElementId> = mutations.iter().flat_map(vertices_of).cloned().collect();
        let named = self.reads.named(&ids);
        let new = self.new_texts(mutations)?;
        let sought = named.iter().cloned().chain(new.iter().map(|(_, named)| Some(named.clone())));
        let sought: Vec<Option<VertexName>> = sought.collect();
        let mut objects = settle::queued_objects(self, &sought);
        let (is_queued, count) = (|number: u64| objects.contains_key(&number), self.reads.count);
        let found = self.reads.candidates(&sought, is_queued, ObjectFields::None).await?;
        objects.extend(found);
        let found =
            |(id, named): (ElementId, Option<VertexName>)| Some((id, named?.object(&objects, count)?.id));
        let mut numbers: HashMap<ElementId, u64> = ids.into_iter().zip(named).filter_map(found).collect();
        let mut taken: HashMap<u64, Option<String>> = objects
            .values()
            .map(|object| (object.id, object.text_id.as_ref().map(TextId::to_string)))
            .collect();
        for (id, named) in new {
            let number = named.new_number(&taken, count);
            taken.insert(number, Some(named.text()));
            numbers.insert(id, number);
        }
        *self.numbers.lock() = numbers;
        let types = self.reads.types();
        let vertex = |object: &ObjectAnswer| (object.id, vertex_of(&types, object, &WantedProperties::None));
        *self.looked_up.lock() = objects.values().map(vertex).collect();
        mutations.iter().try_for_each(|mutation| self.check_with_vertices(mutation))
    }

    /// The ids of new vertices that are texts, and what they name.
    fn new_texts(&self, mutations: &[Mutation]) -> Result<Vec<(ElementId, VertexName)>, GremlinError> {
        let mut new = Vec::new();
        for mutation in mutations {
            if let Mutation::AddVertex { id: Some(id), label, .. } = mutation
                && let NewId::Text(text_id) = self.new_id(label, id)?
            {
                new.push((id.clone(), VertexName::Text(text_id)));
            }
        }
        Ok(new)
    }

    /// Checks a change against the types of the graph, whatever is stored.
    fn check(&self, mutation: &Mutation) -> Result<(), GremlinError> {
        match mutation {
            Mutation::AddVertex { id, label, properties } => {
                id.as_ref().map(|id| self.new_id(label, id)).transpose()?;
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
                    let named = VertexName::of(id, types.take_text_ids());
                    let is_new = named.is_none_or(|named| vertices.insert(named.text()));
                    (!is_new).then(|| vertex_exists(format!("one step adds vertex {id} twice")))
                }
                Mutation::AddEdge { label, out_vertex, in_vertex, replaces: false, .. } => {
                    let keeps_texts = types.take_text_ids();
                    let [from, to] = [out_vertex, in_vertex].map(|id| VertexName::of(id, keeps_texts));
                    let ends = from.zip(to).map(|(from, to)| (from.text(), to.text()));
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
        let is_put_off = matches!(
            mutation,
            Mutation::AddVertex { .. }
                | Mutation::AddEdge { .. }
                | Mutation::SetVertexProperty { .. }
                | Mutation::RemoveProperty { element: Value::Vertex(_), .. }
        );
        if !is_put_off {
            settle::settled(self).await?;
        }
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
        let new = id.map(|id| self.new_id(label, id)).transpose()?;
        let data = Some(self.vertex_data(label, properties)?);
        let (number, text_id) = match new {
            None => (None, None),
            Some(NewId::Number(number)) => (Some(number), None),
            Some(NewId::Text(text_id)) => (None, Some(text_id)),
        };
        let mutation = Write::AddObject {
            kind: label.to_string(),
            data,
            id: number,
            near: None,
            text_id: text_id.clone(),
        };
        let write = self.writes.named(mutation, Conditions::default());
        let number = match (number, id.filter(|_| text_id.is_some())) {
            (Some(number), _) => Some(number),
            (None, Some(id)) => self.numbers.lock().get(id).copied(),
            (None, None) => write.write_id.as_ref().map(|name| new_object_id(name, None, self.reads.count)),
        };
        let number =
            number.ok_or_else(|| GremlinError::bad(format!("a new vertex {label:?} has no number")))?;
        let shown = shown(text_id.as_ref());
        let vertex = Vertex { shown, ..Vertex::reference(number_id(number), Arc::clone(label)) };
        let what = format!("added vertex {}", vertex.known_id());
        settle::put_off(self, QueuedWrite { write, what, change: QueuedChange::Vertex { number } }).await?;
        let object =
            ObjectAnswer { id: number, kind: label.to_string(), version: 0, data: String::new(), text_id };
        self.added.lock().insert(number, object);
        Ok(Value::Vertex(Arc::new(vertex)))
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
        let [(id1, from), (id2, to)] = [out_vertex, in_vertex];
        let name = shown_edge_id(from.known_id(), label, to.known_id());
        let mutation = Write::AddAssociation { id1, kind: label.to_string(), id2, time: None, data };
        let conditions = Conditions { if_exists: (!replaces).then_some(false), ..Conditions::default() };
        let write = self.writes.named(mutation, conditions);
        let what = format!("added edge {name}");
        let change =
            QueuedChange::Edge { ends: [id1, id2], label: Arc::clone(label), name: name.to_string() };
        settle::put_off(self, QueuedWrite { write, what, change }).await?;
        Ok(Value::Edge(edge_of(label, from, to, properties)))
    }

    async fn set_vertex_field(
        &self,
        vertex: &ElementId,
        key: &str,
        value: &Value,
    ) -> Result<Option<Value>, GremlinError> {
        let Some((id, vertex, json)) = self.vertex_field(vertex, key, value)? else { return Ok(None) };
        let data = object_text(vec![(key.to_owned(), json)]);
        let write = self.writes.named(Write::UpdateObject { id, data }, Conditions::default());
        let what = format!("set {key:?} of vertex {}", vertex.known_id());
        let queued = QueuedWrite { write, what, change: QueuedChange::Property { vertex: id } };
        let types = self.reads.types();
        let is_indexed =
            types.object_named(&vertex.label).is_ok_and(|(_, kind)| kind.index_of(key).is_some());
        // A later write may need the unique value that this one replaces, so it is sent alone.
        if is_indexed {
            settle::settled(self).await?;
        }
        settle::put_off(self, queued).await?;
        if is_indexed {
            settle::settled(self).await?;
        }
        Ok(Some(Value::Vertex(vertex)))
    }

    async fn remove_edge(&self, edge: &ElementId) -> Result<(), GremlinError> {
        let types = self.reads.types();
        let Some((list, id1, id2)) = named_edge(&types, edge) else { return Ok(()) };
        let mutation = Write::DeleteAssociation { id1, kind: list.kind.name.clone(), id2 };
        let write = self.writes.named(mutation, Conditions::default());
        self.writes.send(&self.reads, &write, &format!("removed edge {edge}")).await.map(drop)
    }

    /// The id of a new vertex.
    fn new_id(&self, label: &str, id: &ElementId) -> Result<NewId, GremlinError> {
        let types = self.reads.types().on_first_use(TypeKind::Object, label);
        let takes_texts = types.object_named(label).is_ok_and(|(_, kind)| kind.takes_text_ids());
        let text_id = text_id(id).filter(|_| takes_texts).transpose();
        let text_id = text_id
            .map_err(|error| GremlinError::bad(format!("{id:?} cannot be the id of a vertex: {error}")))?;
        let new = text_id.map(NewId::Text).or_else(|| number(id).map(NewId::Number));
        new.ok_or_else(|| {
            let allowed = match takes_texts {
                true => "texts, UUIDs and whole numbers".to_owned(),
                false => format!(
                    "whole numbers from 0 to {}, unless the type is open or declared with ids = \"text\"",
                    u64::MAX
                ),
            };
            GremlinError::bad(format!("{id} cannot be the id of a vertex: ids of {label:?} are {allowed}"))
        })
    }

    /// The number of a vertex that a change under way names.
    pub(super) fn number(&self, id: &ElementId) -> Option<u64> {
        match VertexName::of(id, self.reads.types().take_text_ids())? {
            VertexName::Number(number) => Some(number),
            VertexName::Text(_) => self.numbers.lock().get(id).copied(),
        }
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

    /// The number of a vertex that has been looked up, this vertex, and the value of a field of it as it is stored. `None` if
    /// there is no such vertex.
    fn vertex_field(
        &self,
        vertex: &ElementId,
        key: &str,
        value: &Value,
    ) -> Result<Option<(u64, Arc<Vertex>, String)>, GremlinError> {
        let Some(id) = self.number(vertex) else { return Ok(None) };
        let Some(found) = self.looked_up.lock().get(&id).cloned() else { return Ok(None) };
        let typed = WrittenType::object(&self.reads.types(), &found.label);
        let json = typed.and_then(|typed| typed.json(key, value));
        Ok(Some((id, found, self.reads.checked(json)?)))
    }

    /// The number of a vertex that has been looked up and that a new edge needs, and this vertex.
    fn end(&self, vertex: &ElementId) -> Result<(u64, Arc<Vertex>), GremlinError> {
        let id = self.number(vertex);
        let known = id.and_then(|id| Some((id, self.looked_up.lock().get(&id).cloned()?)));
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
fn one_edge<'a>(
    types: &GraphTypes,
    label: &'a str,
    (id1, id2): (String, String),
) -> (&'a str, String, String) {
    let is_symmetric = types.association(label).is_some_and(|(_, kind)| kind.inverse == Inverse::Symmetric);
    if is_symmetric && id2 < id1 { (label, id2, id1) } else { (label, id1, id2) }
}

fn vertex_exists(message: String) -> QueryError {
    QueryError::Remote { code: ErrorCode::ObjectExists, message, help: VERTEX_EXISTS.to_owned() }
}

/// The vertices that must be looked up before a change.
fn vertices_of(mutation: &Mutation) -> Vec<&ElementId> {
    match mutation {
        Mutation::AddEdge { out_vertex, in_vertex, .. } => vec![out_vertex, in_vertex],
        Mutation::SetVertexProperty { vertex, .. } => vec![vertex],
        Mutation::RemoveProperty { element: Value::Vertex(vertex), .. } => vec![&vertex.id],
        // Its number is the only thing that is needed, and an id that a traversal calculates with is this number.
        Mutation::RemoveVertex { vertex } if number(vertex).is_none() => vec![vertex],
        _ => Vec::new(),
    }
}
