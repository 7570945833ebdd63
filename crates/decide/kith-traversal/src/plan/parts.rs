//! The parts of the steps of a plan.

use super::{Label, Traversal};
use crate::{
    error::Result,
    functions::{Template, TextFunction},
    graph::{ElementTest, Graph, PropertyOrder, VertexSearch},
    semantics::{Relation, Test, lists::ListFunction},
    value::{Cardinality, Column, DateUnit, Direction, ElementId, GType, Scope, Token, Value},
};
use std::{collections::HashSet, sync::Arc};

/// `out`, `in`, `both`, `outE`, `inE` or `bothE`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Hop {
    pub direction: Direction,
    /// The labels of edges; all if empty.
    pub labels: Arc<[Label]>,
    /// Whether the hop ends at edges instead of vertices.
    pub to_edges: bool,
    /// Tests that the edges must pass in the filters that follow.
    pub tests: Arc<[ElementTest]>,
    /// The order of which a limit that follows leaves the first edges, and how many.
    pub top: Option<(PropertyOrder, usize)>,
    /// If rules made this hop from a `repeat`: the pass, counted from 0. Otherwise 0.
    pub pass: u32,
}

impl Hop {
    /// The same edges, followed from the other end.
    pub fn reversed(&self) -> Self {
        let direction = match self.direction {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        };
        Self { direction, ..self.clone() }
    }
}

/// A filter of vertices by whether an edge leads to one of the named vertices.
#[derive(Debug)]
pub struct LeadsTo {
    /// The hop that leads from the named vertices back to those that pass.
    pub back: Hop,
    /// The ends to which the edges lead.
    pub to: NamedIds,
    /// The traversal of the filter, for graphs that do not keep the direction of `back`.
    pub traversal: Traversal,
    /// Whether the other vertices pass.
    pub is_negated: bool,
}

/// The vertices that `hasId` names.
#[derive(Debug)]
pub struct NamedIds {
    /// The ids as the traversal writes them.
    pub ids: Vec<ElementId>,
    /// The test of `hasId`.
    pub test: Test,
    /// Whether it tests the texts of ids.
    pub is_text: bool,
}

impl NamedIds {
    /// The ids of the named vertices in the graph's own form, without those that no vertex can have.
    pub(crate) async fn vertices(&self, graph: &dyn Graph) -> Result<HashSet<ElementId>> {
        let is_meant = |id: &ElementId| match self.is_text {
            true => self.test.is_true(&Value::text(id.to_string())),
            false => self.test.is_true(id),
        };
        let named = graph.named(self.ids.clone()).await?;
        // A graph compares the ids that it looks up by itself.
        let is_named = |given: &ElementId| graph.canonical(given).is_none_or(|id| is_meant(&id));
        Ok(self.ids.iter().zip(named).filter(|(given, _)| is_named(given)).filter_map(|(_, id)| id).collect())
    }
}

/// The search for a shortest path, of at least one hop, from any of several vertices.
#[derive(Debug)]
pub struct ShortestPath {
    /// The hop that the path repeats. If it ends at edges, these are part of the path.
    pub hop: Hop,
    /// The end of the path.
    pub to: PathEnd,
    /// Whether the path must not return to where it begins.
    pub is_simple: bool,
    /// What each vertex of the path must have.
    pub vertices: Option<Traversal>,
    /// What each edge of the path must have.
    pub edges: Option<Traversal>,
}

/// The end of a shortest path.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PathEnd {
    Named(NamedIds),
    /// A vertex that passes the tests. `sought` is what an index may be asked for.
    Tested {
        tests: Traversal,
        sought: Option<VertexSearch>,
    },
}

/// A vertex of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeEnd {
    /// `outV`.
    Out,
    /// `inV`.
    In,
    /// `bothV`.
    Both,
    /// `otherV`: the vertex from which the traverser did not come.
    Other,
}

/// `valueMap` and `propertyMap`.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct PropertyMap {
    pub keys: Vec<Label>,
    /// Whether the map has values (`valueMap`) instead of properties.
    pub is_value: bool,
    /// Whether the map has the id of the element.
    pub with_id: bool,
    /// Whether the map has the label of the element, unless that is a vertex property.
    pub with_label: bool,
    /// Whether the map has the key of a vertex property.
    pub with_key: bool,
    /// Whether the map has the value of a vertex property.
    pub with_value: bool,
    pub by: Option<ByArgument>,
}

/// The part of an element that `has` tests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum TestedPart {
    Token(Token),
    /// The id as a text.
    IdText,
    Property(Label),
}

/// A condition on an element.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct HasTest {
    pub subject: TestedPart,
    pub condition: Condition,
}

impl HasTest {
    /// The condition as a test that a graph can make; `None` if it is about something else than a property or the label.
    pub fn element_test(&self) -> Option<ElementTest> {
        let Condition::Test(test) = &self.condition else { return None };
        let key = match &self.subject {
            TestedPart::Property(key) => Some(Arc::clone(key)),
            TestedPart::Token(Token::Label) => None,
            TestedPart::Token(_) | TestedPart::IdText => return None,
        };
        Some(ElementTest { key, test: Arc::clone(test) })
    }
}

/// The condition of `has` for a value.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Condition {
    Test(Arc<Test>),
    Traversal(Traversal),
}

/// `where` with a predicate whose operands are labels.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct WhereFilter {
    /// The label of the value that is compared; the traverser's own value if `None`.
    pub start: Option<Label>,
    pub predicate: WherePredicate,
    pub by: Vec<ByArgument>,
}

/// A predicate whose operands are labels.
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum WherePredicate {
    Compare { relation: Relation, labels: Vec<Label> },
    And(Vec<WherePredicate>),
    Or(Vec<WherePredicate>),
    Not(Box<WherePredicate>),
}

/// The part of a path that a step is about.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's modulators")]
pub struct PathPart {
    pub from: Option<Label>,
    pub to: Option<Label>,
}

/// The number of members of a list that must pass a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants have the names of Gremlin's steps")]
pub enum Quantifier {
    All,
    Any,
    None,
}

/// The way in which values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants have the names of Gremlin's steps")]
pub enum Reduction {
    Count,
    Sum,
    Mean,
    Min,
    Max,
}

/// The argument of `by`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum ByArgument {
    Identity,
    Token(Token),
    Key(Label),
    Column(Column),
    Traversal(Traversal),
}

/// The key of an option of `choose`.
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum OptionKey {
    Test(Test),
    Traversal(Traversal),
    /// For values that no other option matches.
    NoMatch,
    /// For traversers for which the choice has no value.
    Unproductive,
    /// For all traversers, beside the option that matches.
    Any,
}

/// `choose` and `branch`.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct ChooseParts {
    pub choice: Choice,
    pub options: Vec<(OptionKey, Traversal)>,
    /// Whether all matching options are taken (`branch`), not only the first (`choose`).
    pub takes_all: bool,
}

/// The question by which `choose` decides.
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Choice {
    /// Whether the traversal has a result: the options are `true` and `false`.
    Exists(Traversal),
    /// The first result.
    By(ByArgument),
    Test(Test),
}

/// `repeat`.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Repeat {
    pub body: Traversal,
    pub name: Option<Label>,
    pub until: Option<RepeatEnd>,
    /// Whether `until` is tested before the first pass.
    pub until_first: bool,
    /// The traversers that are emitted: all, or those with a result in the traversal.
    pub emit: Option<Option<Traversal>>,
    /// Whether traversers are emitted before the first pass too.
    pub emit_first: bool,
}

/// The condition on which `repeat` ends for a traverser.
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum RepeatEnd {
    Times(u32),
    Traversal(Traversal),
}

/// `group`.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Group {
    /// The side effect. `None` if the step returns the map.
    pub key: Option<Label>,
    pub keys: ByArgument,
    pub values: Traversal,
}

/// An argument that is known beforehand, the value of a label, or the result of a traversal.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum StepArgument {
    Value(Value),
    Label(Label),
    Traversal(Traversal),
}

/// `property`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct PropertyGiven {
    pub cardinality: Option<Cardinality>,
    pub key: StepArgument,
    pub value: StepArgument,
}

/// `mergeV` and `mergeE`. What is found is matched by `search`.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's options")]
pub struct MergeMaps {
    pub search: StepArgument,
    pub on_create: Option<StepArgument>,
    pub on_match: Option<(StepArgument, Option<Cardinality>)>,
    pub out_vertex: Option<StepArgument>,
    pub in_vertex: Option<StepArgument>,
}

/// Functions of a value that ask nothing of the graph.
#[derive(Debug)]
#[allow(
    missing_docs,
    reason = "the variants have the names of Gremlin's steps, and the fields those of their arguments"
)]
pub enum Function {
    AsString(Scope),
    AsNumber(Option<GType>),
    AsBool,
    AsDate,
    Text(TextFunction, Scope),
    Reverse,
    Concat(Vec<StepArgument>),
    Format { template: Template, by: Vec<ByArgument> },
    DateAdd { unit: DateUnit, amount: i64 },
    DateDiff(StepArgument),
    Conjoin(Label),
    Lists(ListFunction, StepArgument),
}
