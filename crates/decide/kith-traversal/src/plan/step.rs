//! The steps of a plan.

use super::{
    Label, Traversal,
    parts::{
        ByArgument, ChooseParts, EdgeEnd, Function, Group, HasTest, Hop, LeadsTo, MergeMaps, PathPart,
        PropertyGiven, PropertyMap, Quantifier, Reduction, Repeat, ShortestPath, StepArgument, WhereFilter,
    },
};
use crate::{
    bytecode::Instruction,
    functions::Expression,
    graph::{CountedLabels, VertexSearch},
    semantics::Test,
    value::{Column, ElementId, Operator, Order, Pop, Token, Value},
};
use std::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

/// A step, and the labels that `as` gives to it.
#[derive(Debug)]
pub struct Step {
    /// The work of the step.
    pub kind: Kind,
    /// The labels.
    pub labels: Vec<Label>,
    /// The instruction that the step was compiled from, for `explain` and `profile`.
    pub instruction: Instruction,
}

impl Display for Step {
    /// The instruction that the step was compiled from. A step that only stands for a part of another has the name of its kind.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.instruction.name.is_empty() {
            return write!(f, "{}", self.instruction);
        }
        let kind = format!("{:?}", self.kind);
        f.write_str(kind.split(|part: char| !part.is_alphanumeric()).next().unwrap_or_default())
    }
}

/// The work of a step. The names are those of Gremlin's steps where one step is meant.
#[derive(Debug)]
#[allow(
    missing_docs,
    reason = "the variants have the names of Gremlin's steps, and the fields those of their arguments"
)]
pub enum Kind {
    // Steps that begin a traversal, or look something up in its middle.
    Vertices {
        ids: Vec<ElementId>,
    },
    Edges {
        ids: Vec<ElementId>,
    },
    Inject(Vec<Value>),

    // Steps from element to element.
    Hop(Hop),
    EdgeVertex(EdgeEnd),

    // What the rules (`rules.rs`) make of steps. The vertices with these ids, of which only the edges are wanted.
    NamedVertices {
        ids: Vec<ElementId>,
    },
    // The vertices with these properties, if the graph has an index for them, and otherwise all vertices.
    SoughtVertices(VertexSearch),
    // The number of all vertices or edges with these labels, which begins a traversal.
    CountAll {
        of_edges: bool,
        labels: CountedLabels,
    },
    // `Degree` keeps each vertex and multiplies its bulk by the number of its edges.
    Degree(Hop),
    // The vertices that the hop reaches, each once.
    Reach(Hop),
    // Their number.
    CountReached(Hop),
    // The traverser after a shortest path to one of the named vertices.
    ShortestPath(ShortestPath),
    // The vertices with an edge that leads to one of the named vertices, or those without.
    LeadsTo(LeadsTo),

    // Steps from an element to what it has.
    Token(Token),
    Properties {
        keys: Vec<Label>,
        is_value: bool,
    },
    PropertyMap(PropertyMap),
    ElementMap {
        keys: Vec<Label>,
    },
    Element,

    // Filters.
    Has(HasTest),
    // What the rules make of several `has`, each of which is about a property or the label.
    HasAll(Vec<HasTest>),
    HasKey {
        key: Label,
        is_present: bool,
    },
    Is(Test),
    Filter {
        traversal: Traversal,
        is_negated: bool,
    },
    Connective {
        traversals: Vec<Traversal>,
        is_and: bool,
    },
    Where(WhereFilter),
    WhereStart(Label),
    WhereEnd(Label),
    Dedup {
        labels: Vec<Label>,
        by: Option<ByArgument>,
    },
    DedupLocal,
    Range {
        low: i64,
        high: i64,
    },
    RangeLocal {
        low: i64,
        high: i64,
    },
    Tail(i64),
    // For so long after its first traverser, traversers pass.
    TimeLimit(Duration),
    TailLocal(i64),
    Coin(f64),
    Sample {
        count: i64,
        by: Option<ByArgument>,
    },
    SampleLocal(i64),
    SimplePath {
        is_simple: bool,
        between: PathPart,
        by: Vec<ByArgument>,
    },
    Members {
        quantifier: Quantifier,
        test: Test,
    },
    Discard,

    // Steps from a value to another.
    Map(Traversal),
    FlatMap(Traversal),
    Constant(Value),
    Identity,
    Select {
        pop: Pop,
        labels: Vec<Label>,
        by: Vec<ByArgument>,
    },
    SelectKeys {
        traversal: Traversal,
        by: Vec<ByArgument>,
        pop: Pop,
    },
    SelectColumn(Column),
    Project {
        keys: Vec<Label>,
        by: Vec<ByArgument>,
    },
    Path {
        between: PathPart,
        by: Vec<ByArgument>,
    },
    Unfold,
    Fold(Option<(Value, Operator)>),
    Reduce(Reduction),
    ReduceLocal(Reduction),
    Order(Vec<(ByArgument, Order)>),
    OrderLocal(Vec<(ByArgument, Order)>),
    Index {
        is_map: bool,
    },
    Loops(Option<Label>),
    SackValue,
    SackUpdate {
        operator: Operator,
        by: ByArgument,
    },
    Math {
        expression: Expression,
        by: Vec<ByArgument>,
    },
    Function(Function),

    // Branches.
    Local(Traversal),
    Union(Vec<Traversal>),
    Coalesce(Vec<Traversal>),
    Optional(Traversal),
    Choose(ChooseParts),
    Repeat(Repeat),

    // Side effects.
    Aggregate {
        key: Label,
        is_local: bool,
        by: ByArgument,
    },
    Group(Group),
    GroupCount {
        key: Option<Label>,
        by: ByArgument,
    },
    SideEffect(Traversal),
    Cap(Vec<Label>),
    Barrier {
        normalises_sacks: bool,
    },
    Fail(Option<Value>),
    // Without a key it returns what was counted; with one, it puts that aside once its input has ended.
    Profile(Option<Label>),

    // Changes.
    AddVertex {
        label: StepArgument,
        properties: Vec<PropertyGiven>,
    },
    AddEdge {
        label: StepArgument,
        from: Option<StepArgument>,
        to: Option<StepArgument>,
        properties: Vec<PropertyGiven>,
    },
    SetProperty(PropertyGiven),
    Drop,
    MergeVertex(MergeMaps),
    MergeEdge(MergeMaps),
}

impl Kind {
    /// The tests of `has`; none for other steps.
    pub fn has_tests(&self) -> &[HasTest] {
        match self {
            Self::Has(test) => std::slice::from_ref(test),
            Self::HasAll(tests) => tests,
            _ => &[],
        }
    }
}

/// A traversal of these kinds of steps, for what one step stands for.
pub(super) fn traversal(kinds: Vec<Kind>) -> Traversal {
    let step = |kind| {
        let instruction = Instruction::new(Label::from(""), Vec::new());
        std::sync::Arc::new(Step { kind, labels: Vec::new(), instruction })
    };
    kinds.into_iter().map(step).collect()
}
