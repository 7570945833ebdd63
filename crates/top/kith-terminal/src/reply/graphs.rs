//! Graphs as JSON, for the commands that print them.

use kith_live::{AssociationType, GraphTypes, Inverse, ObjectType, TypeId};
use kith_schema::Schema;
use kith_topology::types_of_text;
use kith_wire::documents::{ComponentDocument, LiveGraphDocument, ServedDocument, TopologyDocument};
use serde::Serialize;

/// A graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum GraphReply {
    Loaded(LoadedReply),
    Live(LiveReply),
}

/// A loaded graph at the version that queries pin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadedReply {
    pub graph: String,
    /// Always `loaded`.
    pub kind: &'static str,
    pub version: u64,
    /// The store of records whose fields are the properties of members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<String>,
    pub components: Vec<ComponentReply>,
}

/// An edge type, entity kind or list of members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComponentReply {
    pub name: String,
    pub role: String,
    pub version: u64,
    pub members: u64,
    pub edges: u64,
    pub bytes: u64,
    pub columns: Vec<String>,
    pub loaded_at: u64,
}

/// A live graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveReply {
    pub graph: String,
    /// Always `live`.
    pub kind: &'static str,
    /// The number of changes to its types, counting from 1 for a new graph.
    pub revision: u64,
    /// The storage of its rows.
    pub storage: String,
    pub partitions: u32,
    /// Whether writes may add types.
    pub open: bool,
    pub types: Vec<TypeReply>,
    /// The reason why the types cannot be read; `types` is then empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types_error: Option<String>,
}

/// A type of objects or associations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeReply {
    pub name: String,
    /// `object` or `association`.
    pub kind: &'static str,
    /// The type of the inverse associations, which is the type itself if it is symmetric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjacency: Option<bool>,
    /// Whether the type has any fields, instead of those listed.
    pub open: bool,
    pub fields: Vec<String>,
}

impl GraphReply {
    /// Returns all graphs of a cluster, sorted by name.
    pub fn all(topology: TopologyDocument) -> Vec<Self> {
        let loaded = topology.graphs().cloned().map(|graph| Self::Loaded(graph.into()));
        let live = topology.live.iter().map(|graph| Self::Live(LiveReply::new(graph, &topology)));
        let mut all: Vec<Self> = loaded.chain(live).collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }

    pub fn name(&self) -> &str {
        match self {
            GraphReply::Loaded(graph) => &graph.graph,
            GraphReply::Live(graph) => &graph.graph,
        }
    }
}

impl LiveReply {
    fn new(document: &LiveGraphDocument, topology: &TopologyDocument) -> Self {
        let types = match topology.types.get(&document.name) {
            Some(Ok(text)) => types_of_text(&document.types, text),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err("they were not asked for".to_owned()),
        };
        let (types, types_error) = match types {
            Ok(types) => (types, None),
            Err(reason) => (GraphTypes::default(), Some(reason)),
        };
        let objects = types.objects.values().map(TypeReply::from);
        let associations =
            types.associations.iter().map(|(id, kind)| TypeReply::of_association(*id, kind, &types));
        Self {
            graph: document.name.clone(),
            kind: "live",
            revision: document.types.revision,
            storage: document.storage.clone(),
            partitions: topology.cluster.partitions,
            open: types.open,
            types: objects.chain(associations).collect(),
            types_error,
        }
    }
}

impl TypeReply {
    fn of_association(id: TypeId, kind: &AssociationType, types: &GraphTypes) -> Self {
        let inverse = match kind.inverse {
            Inverse::None => None,
            Inverse::Symmetric => types.associations.get(&id),
            Inverse::Named { kind, .. } => types.associations.get(&kind),
        };
        Self {
            name: kind.name.clone(),
            kind: "association",
            inverse: inverse.map(|inverse| inverse.name.clone()),
            cap: Some(kind.cap),
            adjacency: Some(kind.adjacency),
            open: kind.open,
            fields: fields(&kind.schemas),
        }
    }
}

impl From<&ObjectType> for TypeReply {
    fn from(kind: &ObjectType) -> Self {
        let (name, fields) = (kind.name.clone(), fields(&kind.schemas));
        Self { name, kind: "object", inverse: None, cap: None, adjacency: None, open: kind.open, fields }
    }
}

fn fields(schemas: &[Schema]) -> Vec<String> {
    let fields = schemas.last().into_iter().flat_map(|schema| schema.fields());
    fields.map(|field| field.name().to_owned()).collect()
}

impl From<ServedDocument> for LoadedReply {
    fn from(document: ServedDocument) -> Self {
        let components = document.components.into_iter().map(ComponentReply::from).collect();
        let ServedDocument { name, version, definition, .. } = document;
        Self { graph: name, kind: "loaded", version, properties: definition.properties, components }
    }
}

impl From<ComponentDocument> for ComponentReply {
    fn from(document: ComponentDocument) -> Self {
        let ComponentDocument { name, role, version, columns, members, edges, bytes, loaded_at, .. } =
            document;
        let columns = columns.into_iter().map(|column| column.name).collect();
        Self { name, role, version, members, edges, bytes, columns, loaded_at }
    }
}
