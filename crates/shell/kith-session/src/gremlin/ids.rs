//! The ids of vertices and edges, as Gremlin shows them.

use kith_gremlin::value::{ElementId, Value, Vertex};
use kith_schema::{GraphSchema, KindRole};
use std::{collections::BTreeMap, sync::Arc};

/// The label of members.
pub(super) const MEMBER: &str = "member";

/// A vertex of a loaded graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum VertexKey {
    Member(u64),
    /// An entity, which is unique only together with its kind.
    Entity {
        kind: String,
        id: u64,
    },
}

impl VertexKey {
    /// The vertex that an id names: a number or its digits for a member, `KIND:ID` for an entity. `None` if no vertex can have
    /// this id.
    pub fn parse(id: &ElementId, schema: &GraphSchema) -> Option<Self> {
        let named = id.as_text().and_then(|text| text.rsplit_once(':'));
        let Some((kind, id)) = named else { return number(id).map(Self::Member) };
        let known = schema.kind(kind).filter(|kind| kind.role == KindRole::Entity)?;
        Some(Self::Entity { kind: known.name.clone(), id: id.parse().ok()? })
    }

    /// The id as Gremlin shows it: a `Long`, from 2⁶³ a `BigInteger`, and a text for an entity.
    pub fn id(&self) -> ElementId {
        match self {
            Self::Member(id) => number_id(*id),
            Self::Entity { kind, id } => Value::text(format!("{kind}:{id}")),
        }
    }

    /// The vertex without properties.
    pub fn vertex(&self) -> Arc<Vertex> {
        let label = match self {
            Self::Member(_) => MEMBER,
            Self::Entity { kind, .. } => kind,
        };
        Arc::new(Vertex::reference(self.id(), label))
    }
}

/// The number that an id stands for: a whole number that is not negative, of any type, or the text of its digits. `None` if it
/// stands for none.
pub(super) fn number(id: &ElementId) -> Option<u64> {
    match id {
        Value::Byte(id) => u64::try_from(*id).ok(),
        Value::Short(id) => u64::try_from(*id).ok(),
        Value::Int(id) => u64::try_from(*id).ok(),
        Value::Long(id) => u64::try_from(*id).ok(),
        Value::BigInteger(id) => u64::try_from(&**id).ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A number that is not negative: a `Long`, or a `BigInteger` from 2⁶³.
pub(super) fn number_id(number: u64) -> Value {
    Value::unsigned(number)
}

/// The id of an edge: `OUT>LABEL>IN`.
pub(super) fn edge_id(out_vertex: &Vertex, label: &str, in_vertex: &Vertex) -> ElementId {
    Value::text(format!("{}>{label}>{}", out_vertex.id, in_vertex.id))
}

/// The ends and the label of an edge with this id.
pub(super) fn parse_edge(id: &ElementId, schema: &GraphSchema) -> Option<(VertexKey, String, VertexKey)> {
    let (out_vertex, label, in_vertex) = split_edge(id)?;
    let key = |text: &str| VertexKey::parse(&Value::text(text), schema);
    Some((key(out_vertex)?, schema.kind(label)?.name.clone(), key(in_vertex)?))
}

/// The parts of the id of an edge: the text before the first `>`, the label, and the text after the last `>`.
pub(super) fn split_edge(id: &ElementId) -> Option<(&str, &str, &str)> {
    let (out_vertex, rest) = id.as_text()?.split_once('>')?;
    let (label, in_vertex) = rest.rsplit_once('>')?;
    Some((out_vertex, label, in_vertex))
}

/// Ids by the entity kind of their vertices, `None` for members; ascending and distinct.
pub(super) type Sorts = BTreeMap<Option<String>, Vec<u64>>;

pub(super) fn sorts<'a>(keys: impl Iterator<Item = &'a VertexKey>) -> Sorts {
    let mut sorts = Sorts::new();
    for key in keys {
        match key {
            VertexKey::Member(id) => sorts.entry(None).or_default().push(*id),
            VertexKey::Entity { kind, id } => sorts.entry(Some(kind.clone())).or_default().push(*id),
        }
    }
    sorts.values_mut().for_each(distinct);
    sorts
}

pub(super) fn distinct(ids: &mut Vec<u64>) {
    ids.sort_unstable();
    ids.dedup();
}

pub(super) fn vertex_key(entity_kind: Option<&str>, id: u64) -> VertexKey {
    match entity_kind {
        None => VertexKey::Member(id),
        Some(kind) => VertexKey::Entity { kind: kind.to_owned(), id },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_schema::KindSchema;
    use kith_types::StoreVersion;

    fn schema() -> GraphSchema {
        let kind = |name: &str, role| KindSchema {
            name: name.to_owned(),
            role,
            version: StoreVersion(1),
            columns: Vec::new(),
            one_sided: false,
        };
        GraphSchema { kinds: vec![kind("friends", KindRole::Undirected), kind("school", KindRole::Entity)] }
    }

    #[test]
    fn ids_come_back_as_they_went() {
        let entity = VertexKey::Entity { kind: "school".to_owned(), id: 7 };
        for key in [VertexKey::Member(0), VertexKey::Member(42), VertexKey::Member(u64::MAX), entity] {
            assert_eq!(VertexKey::parse(&key.id(), &schema()), Some(key.clone()), "{key:?}");
            let text = Value::text(key.id().to_string());
            assert_eq!(VertexKey::parse(&text, &schema()), Some(key), "as text");
        }
    }

    #[test]
    fn other_ids_name_no_vertex() {
        for id in
            [Value::Long(-1), Value::text("friends:7"), Value::text("x"), Value::Double(1.0), Value::Null]
        {
            assert_eq!(VertexKey::parse(&id, &schema()), None, "{id}");
        }
    }

    #[test]
    fn edges_have_the_ids_of_their_ends() {
        let (member, school) = (VertexKey::Member(3), VertexKey::Entity { kind: "school".to_owned(), id: 7 });
        let id = edge_id(&member.vertex(), "school", &school.vertex());
        assert_eq!(id, Value::text("3>school>school:7"));
        assert_eq!(parse_edge(&id, &schema()), Some((member, "school".to_owned(), school)));
        assert_eq!(split_edge(&Value::text("3>a>b>7")), Some(("3", "a>b", "7")));
        for text in ["3>school", "3>school>7>8", "x>school>3"] {
            assert_eq!(parse_edge(&Value::text(text), &schema()), None, "{text}");
        }
    }
}
