//! What all steps of an evaluation share.

use super::{tally::Profile, traverser::Traverser};
use crate::{
    error::{GremlinError, Result},
    graph::{Graph, Wanted},
    plan::{Label, Source},
    value::{Operator, Property, Value, Vertex, VertexProperty},
};
use kith_types::ErrorCode;
use parking_lot::Mutex;
use rand::{SeedableRng, rngs::StdRng};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The most work that an evaluation may do, and the seed of its random choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Elements that the graph returns.
    pub elements: u64,
    /// Traversers that steps return.
    pub traversers: u64,
    /// Passes of one `repeat`.
    pub passes: u32,
    /// From which the steps that choose at random draw: the same seed gives the same choices. A SeedStrategy
    /// of the traversal goes before it.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { elements: 100_000, traversers: 1_000_000, passes: 10_000, seed: 0 }
    }
}

/// The graph, the side effects and the limits of one evaluation.
pub(super) struct Context<'a> {
    pub graph: &'a dyn Graph,
    pub source: &'a Source,
    pub with_paths: bool,
    limits: Limits,
    elements: AtomicU64,
    traversers: AtomicU64,
    side_effects: Mutex<HashMap<Label, Value>>,
    /// For the steps that choose at random.
    pub random: Mutex<StdRng>,
    /// What is counted for `profile`; `None` if the traversal has no such step.
    pub profile: Option<Profile<'a>>,
}

impl<'a> Context<'a> {
    /// `empty` are the side effects that steps will add to.
    pub fn new(
        graph: &'a dyn Graph,
        source: &'a Source,
        limits: Limits,
        with_paths: bool,
        empty: HashMap<Label, Value>,
    ) -> Self {
        let mut side_effects = empty;
        side_effects.extend(source.side_effects.iter().map(|(key, value, _)| (key.clone(), value.clone())));
        Self {
            graph,
            source,
            with_paths,
            limits,
            elements: AtomicU64::new(0),
            traversers: AtomicU64::new(0),
            side_effects: Mutex::new(side_effects),
            random: Mutex::new(StdRng::seed_from_u64(source.seed.unwrap_or(limits.seed))),
            profile: None,
        }
    }

    /// A new traverser, with the sack that the source asks for.
    pub fn traverser(&self, value: Value) -> Traverser {
        let mut traverser = Traverser::new(value, self.with_paths);
        traverser.sack = self.source.sack.as_ref().map(|(value, _)| value.clone());
        traverser
    }

    /// Counts elements that the graph has returned.
    pub fn count_elements(&self, count: usize) -> Result<()> {
        count_up(&self.elements, count, self.limits.elements, "elements")
    }

    /// Counts traversers that a step has returned.
    pub fn count_traversers(&self, count: usize) -> Result<()> {
        count_up(&self.traversers, count, self.limits.traversers, "traversers")
    }

    pub fn check_pass(&self, pass: u32) -> Result<()> {
        if pass < self.limits.passes {
            return Ok(());
        }
        let most = self.limits.passes;
        Err(GremlinError::new(
            ErrorCode::TooLarge,
            format!(
                "repeat() took more than {most} passes; end it with times() or until(), or raise kith.budget"
            ),
        ))
    }

    pub fn side_effect(&self, key: &str) -> Option<Value> {
        self.side_effects.lock().get(key).cloned()
    }

    /// Changes a side effect; `change` gets its value, if it has one.
    pub fn change_side_effect(
        &self,
        key: &Label,
        change: impl FnOnce(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        let mut all = self.side_effects.lock();
        let before = all.remove(key);
        all.insert(Arc::clone(key), change(before)?);
        Ok(())
    }

    /// The operator by which further values are added to a side effect, if the source names one.
    pub fn operator_of(&self, key: &str) -> Option<Operator> {
        let mut known = self.source.side_effects.iter();
        known.find(|(name, _, _)| &**name == key).and_then(|(_, _, operator)| *operator)
    }

    /// The properties of elements, for each element. Values that are no elements have none.
    pub async fn properties(&self, elements: &[&Value], wanted: &Wanted) -> Result<Vec<Vec<Value>>> {
        let mut ids: Vec<Value> = Vec::new();
        let mut places: HashMap<&Value, usize> = HashMap::new();
        for element in elements {
            if let Value::Vertex(vertex) = element
                && vertex.properties.is_none()
                && !places.contains_key(&vertex.id)
            {
                places.insert(&vertex.id, ids.len());
                ids.push(vertex.id.clone());
            }
        }
        let fetched =
            if ids.is_empty() { Vec::new() } else { self.graph.vertices(ids, wanted.clone()).await? };
        self.count_elements(fetched.len())?;
        let of = |element: &&Value| match element {
            Value::Vertex(vertex) => {
                let fetched = places.get(&vertex.id).and_then(|at| fetched[*at].as_ref());
                of_vertex(fetched.unwrap_or(vertex), wanted)
            }
            Value::Edge(edge) => of_element(edge.properties.as_deref().unwrap_or_default(), wanted),
            Value::VertexProperty(property) => of_element(&property.properties, wanted),
            _ => Vec::new(),
        };
        Ok(elements.iter().map(of).collect())
    }
}

fn count_up(counter: &AtomicU64, count: usize, most: u64, what: &str) -> Result<()> {
    let before = counter.fetch_add(count as u64, Ordering::Relaxed);
    if before + count as u64 <= most {
        return Ok(());
    }
    Err(GremlinError::new(
        ErrorCode::TooLarge,
        format!("the traversal needs more than {most} {what}; ask for less, or raise kith.budget"),
    ))
}

fn is_wanted(key: &str, wanted: &Wanted) -> bool {
    match wanted {
        Wanted::None => false,
        Wanted::All => true,
        Wanted::Keys(keys) => keys.iter().any(|wanted| &**wanted == key),
    }
}

fn of_vertex(vertex: &Vertex, wanted: &Wanted) -> Vec<Value> {
    let all = vertex.properties.as_deref().unwrap_or_default().iter();
    let wanted = all.filter(|property: &&Arc<VertexProperty>| is_wanted(&property.key, wanted));
    wanted.map(|property| Value::VertexProperty(Arc::clone(property))).collect()
}

fn of_element(properties: &[Arc<Property>], wanted: &Wanted) -> Vec<Value> {
    let wanted = properties.iter().filter(|property| is_wanted(&property.key, wanted));
    wanted.map(|property| Value::Property(Arc::clone(property))).collect()
}
