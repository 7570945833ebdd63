//! The steps of a plan.

use super::{Label, Traversal};
use crate::{
    bytecode::Instruction,
    functions::{Expression, Template, TextFunction},
    semantics::{Relation, Test, lists::ListFunction},
    value::{
        Cardinality, Column, DateUnit, Direction, ElementId, GType, Operator, Order, Pop, Scope, Token, Value,
    },
};

/// A step, and the labels that `as` gives to it.
#[derive(Debug)]
pub struct Step {
    /// What the step does.
    pub kind: Kind,
    /// The labels.
    pub labels: Vec<Label>,
    /// The instruction that the step was compiled from, for `explain` and `profile`.
    pub instruction: Instruction,
}

/// What a step does. The names are those of Gremlin's steps where one step is meant.
#[derive(Debug)]
#[allow(
    missing_docs,
    reason = "the variants have the names of Gremlin's steps, and the fields those of their arguments"
)]
pub enum Kind {
    // Steps that begin a traversal, or look something up in its middle.
    Vertices { ids: Vec<ElementId> },
    Edges { ids: Vec<ElementId> },
    Inject(Vec<Value>),

    // Steps from element to element.
    Hop(Hop),
    EdgeVertex(EdgeEnd),

    // Steps from an element to what it has.
    Token(Token),
    Properties { keys: Vec<Label>, is_value: bool },
    PropertyMap(PropertyMap),
    ElementMap { keys: Vec<Label> },
    Element,

    // Filters.
    Has(HasTest),
    HasKey { key: Label, is_present: bool },
    Is(Test),
    Filter { traversal: Traversal, is_negated: bool },
    Connective { traversals: Vec<Traversal>, is_and: bool },
    Where(Where),
    WhereStart(Label),
    WhereEnd(Label),
    Dedup { labels: Vec<Label>, by: Option<By> },
    DedupLocal,
    Range { low: i64, high: i64 },
    RangeLocal { low: i64, high: i64 },
    Tail(i64),
    TailLocal(i64),
    Coin(f64),
    Sample { count: i64, by: Option<By> },
    SampleLocal(i64),
    SimplePath { is_simple: bool, between: Between, by: Vec<By> },
    Members { quantifier: Quantifier, test: Test },
    Discard,

    // Steps from a value to another.
    Map(Traversal),
    FlatMap(Traversal),
    Constant(Value),
    Identity,
    Select { pop: Pop, labels: Vec<Label>, by: Vec<By> },
    SelectKeys { traversal: Traversal, by: Vec<By>, pop: Pop },
    SelectColumn(Column),
    Project { keys: Vec<Label>, by: Vec<By> },
    Path { between: Between, by: Vec<By> },
    Unfold,
    Fold(Option<(Value, Operator)>),
    Reduce(Reduction),
    ReduceLocal(Reduction),
    Order(Vec<(By, Order)>),
    OrderLocal(Vec<(By, Order)>),
    Index { is_map: bool },
    Loops(Option<Label>),
    SackValue,
    SackUpdate { operator: Operator, by: By },
    Math { expression: Expression, by: Vec<By> },
    Function(Function),

    // Branches.
    Local(Traversal),
    Union(Vec<Traversal>),
    Coalesce(Vec<Traversal>),
    Optional(Traversal),
    Choose(Choose),
    Repeat(Repeat),

    // Side effects.
    Aggregate { key: Label, is_local: bool, by: By },
    Group(Group),
    GroupCount { key: Option<Label>, by: By },
    SideEffect(Traversal),
    Cap(Vec<Label>),
    Barrier { normalises_sacks: bool },
    Fail(Option<Value>),
    // Without a key it returns what was counted; with one, it puts that aside once its input has ended.
    Profile(Option<Label>),

    // Changes.
    AddVertex { label: Given, properties: Vec<PropertyGiven> },
    AddEdge { label: Given, from: Option<Given>, to: Option<Given>, properties: Vec<PropertyGiven> },
    SetProperty(PropertyGiven),
    Drop,
    MergeVertex(MergeMaps),
    MergeEdge(MergeMaps),
}

/// `out`, `in`, `both`, `outE`, `inE` or `bothE`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Hop {
    pub direction: Direction,
    /// The labels of edges; all if empty.
    pub labels: std::sync::Arc<[Label]>,
    /// Whether the hop ends at edges instead of vertices.
    pub to_edges: bool,
}

/// Which vertex of an edge.
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
    /// Whether the map has the label of the element, or the key and value of a property.
    pub with_label: bool,
    pub by: Option<By>,
}

/// What `has` looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Subject {
    Token(Token),
    /// The id as a text.
    IdText,
    Property(Label),
}

/// A condition on an element.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct HasTest {
    pub subject: Subject,
    pub condition: Condition,
}

/// What `has` wants of a value.
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Condition {
    Test(Test),
    Traversal(Traversal),
}

/// `where` with a predicate whose operands are labels.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Where {
    /// The label of the value that is compared; the traverser's own value if `None`.
    pub start: Option<Label>,
    pub predicate: WherePredicate,
    pub by: Vec<By>,
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

/// Which part of a path a step is about.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's modulators")]
pub struct Between {
    pub from: Option<Label>,
    pub to: Option<Label>,
}

/// How many members of a list must pass a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants have the names of Gremlin's steps")]
pub enum Quantifier {
    All,
    Any,
    None,
}

/// How values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants have the names of Gremlin's steps")]
pub enum Reduction {
    Count,
    Sum,
    Mean,
    Min,
    Max,
}

/// What `by` makes of a value.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum By {
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
pub struct Choose {
    pub choice: Choice,
    pub options: Vec<(OptionKey, Traversal)>,
    /// Whether all matching options are taken (`branch`), not only the first (`choose`).
    pub takes_all: bool,
}

/// What `choose` decides by.
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Choice {
    /// Whether the traversal has a result: the options are `true` and `false`.
    Exists(Traversal),
    /// The first result.
    By(By),
    Test(Test),
}

/// `repeat`.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Repeat {
    pub body: Traversal,
    pub name: Option<Label>,
    pub until: Option<Until>,
    /// Whether `until` is tested before the first pass.
    pub until_first: bool,
    /// What is emitted: everything, or what has a result in the traversal.
    pub emit: Option<Option<Traversal>>,
    /// Whether traversers are emitted before the first pass too.
    pub emit_first: bool,
}

/// When `repeat` ends for a traverser.
#[derive(Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Until {
    Times(u32),
    Traversal(Traversal),
}

/// `group`.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct Group {
    /// The side effect. `None` if the step returns the map.
    pub key: Option<Label>,
    pub keys: By,
    pub values: Traversal,
}

/// An argument that is known beforehand, the value of a label, or the result of a traversal.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Given {
    Value(Value),
    Label(Label),
    Traversal(Traversal),
}

/// `property`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub struct PropertyGiven {
    pub cardinality: Option<Cardinality>,
    pub key: Given,
    pub value: Given,
}

/// `mergeV` and `mergeE`. What is found is matched by `search`.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields have the names of Gremlin's options")]
pub struct MergeMaps {
    pub search: Given,
    pub on_create: Option<Given>,
    pub on_match: Option<(Given, Option<Cardinality>)>,
    pub out_vertex: Option<Given>,
    pub in_vertex: Option<Given>,
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
    Concat(Vec<Given>),
    Format { template: Template, by: Vec<By> },
    DateAdd { unit: DateUnit, amount: i64 },
    DateDiff(Given),
    Conjoin(Label),
    Lists(ListFunction, Given),
}
