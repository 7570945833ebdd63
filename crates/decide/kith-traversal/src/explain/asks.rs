//! The questions of steps to a graph.

use crate::{
    graph::PropertyOrder,
    plan::{ByArgument, Function, Group, HasTest, Kind, Label, LeadsTo, PathEnd, ShortestPath, TestedPart},
    value::{Direction, ElementId, Token},
};
use std::{
    collections::BTreeSet,
    fmt::{self, Display, Formatter},
};

/// A question of a step to a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum StepQuestion {
    /// Vertices by their ids, once.
    Vertices { ids: Vec<ElementId> },
    /// The vertices with certain properties, by these keys, from an index. If there is no index, all vertices, page by page.
    Sought { keys: Vec<Label> },
    /// All vertices, page by page.
    AllVertices,
    /// The number of all vertices or edges with these labels, once; of all labels if there are none.
    CountAll { of_edges: bool, labels: Option<Vec<Label>> },
    /// Edges by their ids, once.
    Edges { count: usize },
    /// All edges, page by page.
    AllEdges,
    /// The edges of the vertices of each batch. Without labels, edges of all labels. `within` has the keys of the properties
    /// that must pass tests. `tests` has these and others, and `first` an order and how many edges of each vertex are wanted.
    Hop {
        direction: Direction,
        labels: Vec<Label>,
        within: Vec<Label>,
        tests: Vec<String>,
        first: Option<String>,
    },
    /// The number of such edges of each vertex of a batch.
    Degree { direction: Direction, labels: Vec<Label> },
    /// The set of vertices at the other ends of such edges of all vertices, once all of these have come.
    Reach { direction: Direction, labels: Vec<Label> },
    /// The size of that set.
    CountReached { direction: Direction, labels: Vec<Label> },
    /// The edges that the search for a path to the named vertices follows, hop by hop. `named` is the number of these; 0 if the
    /// path ends at a vertex that passes tests.
    Path { direction: Direction, labels: Vec<Label>, named: usize },
    /// The set of vertices from which such edges lead to named vertices, once for each batch. `named` is the number of the
    /// named vertices.
    LeadsTo { direction: Direction, labels: Vec<Label>, named: usize },
    /// The ids that vertices were given, of those of each batch, in a graph that computes numbers from such ids.
    Ids,
    /// Properties of the vertices of each batch; all properties without keys. If they are wanted only for tests that a graph can
    /// make, `tests` has these.
    Properties { keys: Vec<Label>, tests: Vec<String> },
    /// A change for each traverser.
    Write,
    /// A search, and then a change, for each traverser.
    SearchAndWrite,
}

/// The kind of values of the traversers before a step, as far as the plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum TraverserKind {
    Vertices,
    Edges,
    /// Any values, or the plan does not say.
    Unknown,
}

impl TraverserKind {
    /// The kind of values of traversers after a step. `nested` is what those of its nested traversals hold in the end.
    pub(super) fn after(self, kind: &Kind, nested: &[Self]) -> Self {
        match kind {
            Kind::Vertices { .. }
            | Kind::NamedVertices { .. }
            | Kind::SoughtVertices(_)
            | Kind::EdgeVertex(_)
            | Kind::MergeVertex(_)
            | Kind::AddVertex { .. } => Self::Vertices,
            Kind::Edges { .. } | Kind::MergeEdge(_) | Kind::AddEdge { .. } => Self::Edges,
            Kind::Hop(hop) if hop.to_edges => Self::Edges,
            Kind::Hop(_) | Kind::Reach(_) | Kind::ShortestPath(_) => Self::Vertices,
            Kind::Map(_) | Kind::FlatMap(_) | Kind::Local(_) | Kind::Union(_) | Kind::Coalesce(_) => {
                Self::common(nested.iter().copied())
            }
            Kind::Optional(_) | Kind::Repeat(_) => Self::common(nested.iter().take(1).copied().chain([self])),
            Kind::Degree(_)
            | Kind::Has(_)
            | Kind::HasAll(_)
            | Kind::HasKey { .. }
            | Kind::Is(_)
            | Kind::Filter { .. }
            | Kind::LeadsTo(_)
            | Kind::Connective { .. }
            | Kind::Where(_)
            | Kind::WhereStart(_)
            | Kind::WhereEnd(_)
            | Kind::Dedup { .. }
            | Kind::Range { .. }
            | Kind::Tail(_)
            | Kind::TimeLimit(_)
            | Kind::Coin(_)
            | Kind::Sample { .. }
            | Kind::SimplePath { .. }
            | Kind::Identity
            | Kind::Order(_)
            | Kind::Aggregate { .. }
            | Kind::Group(Group { key: Some(_), .. })
            | Kind::GroupCount { key: Some(_), .. }
            | Kind::SideEffect(_)
            | Kind::Barrier { .. }
            | Kind::SackUpdate { .. }
            | Kind::SetProperty(_) => self,
            _ => Self::Unknown,
        }
    }

    fn common(all: impl IntoIterator<Item = Self>) -> Self {
        let mut all = all.into_iter();
        let first = all.next().unwrap_or(Self::Unknown);
        if all.all(|other| other == first) { first } else { Self::Unknown }
    }
}

/// The question of a step to the graph. `None` if it needs nothing that the traversers do not have.
pub(super) fn of(kind: &Kind, before: TraverserKind) -> Option<StepQuestion> {
    match kind {
        Kind::Vertices { ids } if ids.is_empty() => Some(StepQuestion::AllVertices),
        Kind::SoughtVertices(sought) => {
            let keys = sought.properties.iter().map(|(key, _)| key.clone());
            Some(StepQuestion::Sought { keys: keys.collect() })
        }
        Kind::Edges { ids } if ids.is_empty() => Some(StepQuestion::AllEdges),
        Kind::CountAll { of_edges, labels } => {
            let labels = labels.named().map(<[Label]>::to_vec);
            Some(StepQuestion::CountAll { of_edges: *of_edges, labels })
        }
        Kind::Vertices { ids } => Some(StepQuestion::Vertices { ids: ids.clone() }),
        Kind::Edges { ids } => Some(StepQuestion::Edges { count: ids.len() }),
        Kind::Hop(hop) => {
            let within: BTreeSet<&Label> = hop.tests.iter().filter_map(|test| test.key.as_ref()).collect();
            let within = within.into_iter().cloned().collect();
            let (direction, labels) = (hop.direction, hop.labels.to_vec());
            let tests = hop.tests.iter().map(ToString::to_string).collect();
            let first = hop.top.as_ref().map(|(PropertyOrder { key, descending }, count)| {
                format!("first {count} by {key}{}", if *descending { ", descending" } else { "" })
            });
            Some(StepQuestion::Hop { direction, labels, within, tests, first })
        }
        Kind::Degree(hop) => {
            Some(StepQuestion::Degree { direction: hop.direction, labels: hop.labels.to_vec() })
        }
        Kind::Reach(hop) => {
            Some(StepQuestion::Reach { direction: hop.direction, labels: hop.labels.to_vec() })
        }
        Kind::CountReached(hop) => {
            Some(StepQuestion::CountReached { direction: hop.direction, labels: hop.labels.to_vec() })
        }
        Kind::LeadsTo(LeadsTo { back, to, .. }) => {
            let (direction, labels) = (back.reversed().direction, back.labels.to_vec());
            Some(StepQuestion::LeadsTo { direction, labels, named: to.ids.len() })
        }
        Kind::ShortestPath(ShortestPath { hop, to, .. }) => {
            let (direction, labels) = (hop.direction, hop.labels.to_vec());
            let named = if let PathEnd::Named(named) = to { named.ids.len() } else { 0 };
            Some(StepQuestion::Path { direction, labels, named })
        }
        Kind::MergeVertex(_) | Kind::MergeEdge(_) => Some(StepQuestion::SearchAndWrite),
        kind if kind.is_change() => Some(StepQuestion::Write),
        kind if needs_ids(kind) => Some(StepQuestion::Ids),
        // Edges come with their properties.
        _ if before == TraverserKind::Edges => None,
        kind => {
            let tests: Option<Vec<_>> = kind.has_tests().iter().map(HasTest::element_test).collect();
            let tests = tests.unwrap_or_default().iter().map(ToString::to_string).collect();
            properties(kind).map(|keys| StepQuestion::Properties { keys, tests })
        }
    }
}

/// The reason why a step asks for nothing, where one might expect that it does.
pub(super) fn at_hand(kind: &Kind, before: TraverserKind) -> &'static str {
    match kind {
        Kind::EdgeVertex(_) => "nothing: edges come with both ends",
        Kind::NamedVertices { .. } => "nothing: vertices that do not exist have no edges",
        _ if before == TraverserKind::Edges && properties(kind).is_some() => {
            "nothing: edges come with their properties"
        }
        _ => "",
    }
}

/// Whether a step needs the ids of elements, and no properties of vertices, whose ids come with them.
fn needs_ids(kind: &Kind) -> bool {
    let is_id = |test: &HasTest| matches!(test.subject, TestedPart::IdText | TestedPart::Token(Token::Id));
    let is_wanted = match kind {
        Kind::Token(Token::Id) => true,
        Kind::Has(_) | Kind::HasAll(_) => kind.has_tests().iter().any(is_id),
        kind => bys(kind).into_iter().any(|by| matches!(by, ByArgument::Token(Token::Id))),
    };
    is_wanted && properties(kind).is_none()
}

/// The keys of the properties that a step needs; none for all properties. `None` if it needs no properties.
pub(super) fn properties(kind: &Kind) -> Option<Vec<Label>> {
    match kind {
        Kind::Properties { keys, .. } | Kind::ElementMap { keys } => Some(keys.clone()),
        Kind::PropertyMap(map) => Some(map.keys.clone()),
        Kind::Has(_) | Kind::HasAll(_) => {
            let key = |test: &HasTest| match &test.subject {
                TestedPart::Property(key) => Some(key.clone()),
                TestedPart::Token(_) | TestedPart::IdText => None,
            };
            let keys: Vec<Label> = kind.has_tests().iter().filter_map(key).collect();
            (!keys.is_empty()).then_some(keys)
        }
        Kind::HasKey { key, .. } => Some(vec![key.clone()]),
        kind => {
            let keys: BTreeSet<&Label> = bys(kind).into_iter().filter_map(key_of).collect();
            (!keys.is_empty()).then(|| keys.into_iter().cloned().collect())
        }
    }
}

fn key_of(by: &ByArgument) -> Option<&Label> {
    match by {
        ByArgument::Key(key) => Some(key),
        ByArgument::Identity | ByArgument::Token(_) | ByArgument::Column(_) | ByArgument::Traversal(_) => {
            None
        }
    }
}

/// The `by` of a step that are about its traversers.
fn bys(kind: &Kind) -> Vec<&ByArgument> {
    match kind {
        Kind::SimplePath { by, .. }
        | Kind::Select { by, .. }
        | Kind::Project { by, .. }
        | Kind::Path { by, .. }
        | Kind::Math { by, .. }
        | Kind::Function(Function::Format { by, .. }) => by.iter().collect(),
        Kind::Dedup { by, .. } | Kind::Sample { by, .. } => by.iter().collect(),
        Kind::Where(wanted) => wanted.by.iter().collect(),
        Kind::Order(by) => by.iter().map(|(by, _)| by).collect(),
        Kind::SackUpdate { by, .. } | Kind::Aggregate { by, .. } | Kind::GroupCount { by, .. } => vec![by],
        Kind::Group(group) => vec![&group.keys],
        _ => Vec::new(),
    }
}

/// Whether a step is a filter by something other than an id, which is tested after the elements have been read.
pub(super) fn is_test(kind: &Kind) -> bool {
    match kind {
        Kind::Has(_) | Kind::HasAll(_) => {
            kind.has_tests().iter().any(|test| test.subject != TestedPart::Token(Token::Id))
        }
        Kind::HasKey { .. } => true,
        _ => false,
    }
}

fn edges(direction: Direction, labels: &[Label]) -> String {
    let which = match direction {
        Direction::Out => "outgoing edges",
        Direction::In => "incoming edges",
        Direction::Both => "edges",
    };
    match labels {
        [] => format!("{which} of all labels"),
        labels => format!("{which} labelled {}", labels.join(" or ")),
    }
}

fn vertices(count: usize) -> &'static str {
    if count == 1 { "vertex" } else { "vertices" }
}

impl Display for StepQuestion {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match self {
            Self::Vertices { ids } if ids.len() == 1 => f.write_str("1 vertex by its id"),
            Self::Vertices { ids } => write!(f, "{} vertices by their ids", ids.len()),
            Self::Sought { keys } => {
                write!(f, "vertices by an index on {}, or else all vertices, page by page", keys.join(" or "))
            }
            Self::CountAll { of_edges, labels } => {
                let elements = if *of_edges { "edges" } else { "vertices" };
                match labels.as_deref() {
                    None => write!(f, "the number of all {elements}"),
                    Some([]) => write!(f, "the number of {elements} with no label, which is 0"),
                    Some(labels) => write!(f, "the number of {elements} labelled {}", labels.join(" or ")),
                }
            }
            Self::AllVertices => f.write_str("all vertices, page by page"),
            Self::Edges { count } => write!(f, "{count} edge{0} by id{0}", plural(*count)),
            Self::AllEdges => f.write_str("all edges, page by page"),
            Self::Hop { direction, labels, within, .. } if within.is_empty() => {
                f.write_str(&edges(*direction, labels))
            }
            Self::Hop { direction, labels, within, .. } => {
                write!(f, "{} with the wanted {}", edges(*direction, labels), within.join(" and "))
            }
            Self::Degree { direction, labels } => write!(f, "the number of {}", edges(*direction, labels)),
            Self::Reach { direction, labels } => {
                write!(f, "the set of vertices at the other ends of {}", edges(*direction, labels))
            }
            Self::CountReached { direction, labels } => {
                write!(f, "the number of vertices at the other ends of {}", edges(*direction, labels))
            }
            Self::Path { direction, labels, named: 0 } => write!(
                f,
                "{} on the way to a vertex that passes the tests, hop by hop, from both ends if an index finds the last",
                edges(*direction, labels)
            ),
            Self::Path { direction, labels, named } => write!(
                f,
                "{} on the way to the {named} named {}, hop by hop, from both ends if possible",
                edges(*direction, labels),
                vertices(*named)
            ),
            Self::LeadsTo { direction, labels, named } => write!(
                f,
                "the set of vertices from which {} lead to the {named} named {}",
                edges(*direction, labels),
                vertices(*named)
            ),
            Self::Properties { keys, .. } if keys.is_empty() => f.write_str("all properties"),
            Self::Properties { keys, .. } => {
                let noun = if keys.len() == 1 { "property" } else { "properties" };
                write!(f, "the {noun} {}", keys.join(", "))
            }
            Self::Ids => f.write_str("the ids that vertices were given"),
            Self::Write => f.write_str("a write for each traverser"),
            Self::SearchAndWrite => f.write_str("a search and a write for each traverser"),
        }
    }
}
