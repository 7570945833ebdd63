//! The names that Gremlin text can use.

use crate::value::{
    Barrier, Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope,
    Symbol, Token, Value,
};
use strum::VariantNames;

/// The steps of TinkerPop 3.8, also those that Kith refuses when it compiles a traversal.
#[rustfmt::skip]
pub const STEPS: &[&str] = &[
    "E", "V", "addE", "addV", "aggregate", "all", "and", "any", "as", "asBool", "asDate", "asNumber", "asString", "barrier",
    "both", "bothE", "bothV", "branch", "by", "call", "cap", "choose", "coalesce", "coin", "combine", "concat", "conjoin",
    "connectedComponent", "constant", "count", "cyclicPath", "dateAdd", "dateDiff", "dedup", "difference", "discard",
    "disjunct", "drop", "element", "elementMap", "emit", "fail", "filter", "flatMap", "fold", "format", "from", "group",
    "groupCount", "has", "hasId", "hasKey", "hasLabel", "hasNot", "hasValue", "id", "identity", "in", "inE", "inV", "index",
    "inject", "intersect", "io", "is", "key", "lTrim", "label", "length", "limit", "local", "loops", "map", "match", "math",
    "max", "mean", "merge", "mergeE", "mergeV", "min", "none", "not", "option", "optional", "or", "order", "otherV", "out",
    "outE", "outV", "pageRank", "path", "peerPressure", "product", "profile", "program", "project", "properties", "property",
    "propertyMap", "rTrim", "range", "read", "repeat", "replace", "reverse", "sack", "sample", "select", "shortestPath",
    "sideEffect", "simplePath", "skip", "split", "subgraph", "substring", "sum", "tail", "timeLimit", "times", "to", "toE",
    "toLower", "toUpper", "toV", "tree", "trim", "unfold", "union", "until", "value", "valueMap", "values", "where", "with",
    "write",
];

/// The steps that can begin a traversal.
pub const FIRST_STEPS: &[&str] =
    &["V", "E", "addV", "addE", "mergeV", "mergeE", "inject", "io", "call", "union"];

/// The calls that can stand between the name of a traversal source and the first step.
pub const SOURCE_STEPS: &[&str] = &[
    "with",
    "withBulk",
    "withComputer",
    "withPath",
    "withSack",
    "withSideEffect",
    "withStrategies",
    "withoutStrategies",
];

/// The methods that can end a traversal.
pub const TERMINALS: &[&str] =
    &["next", "toList", "toSet", "toBulkSet", "iterate", "hasNext", "tryNext", "explain"];

/// The predicates with the number of their operands; `None` if they take any number.
pub const PREDICATES: &[(&str, Option<usize>)] = &[
    ("eq", Some(1)),
    ("neq", Some(1)),
    ("gt", Some(1)),
    ("gte", Some(1)),
    ("lt", Some(1)),
    ("lte", Some(1)),
    ("between", Some(2)),
    ("inside", Some(2)),
    ("outside", Some(2)),
    ("within", None),
    ("without", None),
    ("typeOf", Some(1)),
    ("not", Some(1)),
    ("containing", Some(1)),
    ("notContaining", Some(1)),
    ("startingWith", Some(1)),
    ("notStartingWith", Some(1)),
    ("endingWith", Some(1)),
    ("notEndingWith", Some(1)),
    ("regex", Some(1)),
    ("notRegex", Some(1)),
];

/// The enumerations, with the names of their values.
const ENUMERATIONS: &[(&str, &[&str])] = &[
    ("T", Token::VARIANTS),
    ("Order", Order::VARIANTS),
    ("Scope", Scope::VARIANTS),
    ("Pop", Pop::VARIANTS),
    ("Column", Column::VARIANTS),
    ("Direction", Direction::VARIANTS),
    ("Operator", Operator::VARIANTS),
    ("Cardinality", Cardinality::VARIANTS),
    ("Merge", Merge::VARIANTS),
    ("Pick", Pick::VARIANTS),
    ("DT", DateUnit::VARIANTS),
    ("Barrier", Barrier::VARIANTS),
    ("GType", GType::VARIANTS),
];

/// Constants that stand for plain values, by class. The values are those that drivers send.
const CONSTANTS: &[(&str, &[(&str, Constant)])] = &[
    (
        "WithOptions",
        &[
            ("tokens", Constant::Text("~tinkerpop.valueMap.tokens")),
            ("none", Constant::Int(0)),
            ("ids", Constant::Int(1)),
            ("labels", Constant::Int(2)),
            ("keys", Constant::Int(4)),
            ("values", Constant::Int(8)),
            ("all", Constant::Int(15)),
            ("indexer", Constant::Text("~tinkerpop.index.indexer")),
            ("list", Constant::Int(0)),
            ("map", Constant::Int(1)),
        ],
    ),
    (
        "IO",
        &[
            ("reader", Constant::Text("~tinkerpop.io.reader")),
            ("writer", Constant::Text("~tinkerpop.io.writer")),
            ("registry", Constant::Text("~tinkerpop.io.registry")),
            ("gryo", Constant::Text("gryo")),
            ("graphson", Constant::Text("graphson")),
            ("graphml", Constant::Text("graphml")),
        ],
    ),
    (
        "ShortestPath",
        &[
            ("target", Constant::Text("~tinkerpop.shortestPath.target")),
            ("edges", Constant::Text("~tinkerpop.shortestPath.edges")),
            ("distance", Constant::Text("~tinkerpop.shortestPath.distance")),
            ("maxDistance", Constant::Text("~tinkerpop.shortestPath.maxDistance")),
            ("includeEdges", Constant::Text("~tinkerpop.shortestPath.includeEdges")),
        ],
    ),
    (
        "PageRank",
        &[
            ("edges", Constant::Text("~tinkerpop.pageRank.edges")),
            ("times", Constant::Text("~tinkerpop.pageRank.times")),
            ("propertyName", Constant::Text("~tinkerpop.pageRank.propertyName")),
        ],
    ),
    (
        "PeerPressure",
        &[
            ("edges", Constant::Text("~tinkerpop.peerPressure.edges")),
            ("times", Constant::Text("~tinkerpop.peerPressure.times")),
            ("propertyName", Constant::Text("~tinkerpop.peerPressure.propertyName")),
        ],
    ),
    (
        "ConnectedComponent",
        &[
            ("component", Constant::Text("gremlin.connectedComponentVertexProgram.component")),
            ("edges", Constant::Text("~tinkerpop.connectedComponent.edges")),
            ("propertyName", Constant::Text("~tinkerpop.connectedComponent.propertyName")),
        ],
    ),
];

#[derive(Clone, Copy)]
enum Constant {
    Text(&'static str),
    Int(i32),
}

/// The number of operands of a predicate; `None` if this is the name of no predicate.
pub fn operands(predicate: &str) -> Option<Option<usize>> {
    PREDICATES.iter().find(|(name, _)| *name == predicate).map(|(_, operands)| *operands)
}

/// Whether this is a class with constants, such as `Order` or `WithOptions`.
pub fn is_class(name: &str) -> bool {
    members(name).next().is_some()
}

/// The names of the constants of a class.
pub fn members(class: &str) -> impl Iterator<Item = &'static str> {
    let values = ENUMERATIONS.iter().filter(move |(name, _)| *name == class).flat_map(|(_, values)| *values);
    let constants = CONSTANTS.iter().filter(move |(name, _)| *name == class).flat_map(|(_, values)| *values);
    let aliases = ["from", "to"].into_iter().filter(move |_| class == "Direction");
    values.copied().chain(constants.map(|(name, _)| *name)).chain(aliases)
}

/// The value of a constant of a class, such as `Order.desc`.
pub fn member(class: &str, name: &str) -> Option<Value> {
    let name = match (class, name) {
        ("Direction", "from") => "OUT",
        ("Direction", "to") => "IN",
        _ => name,
    };
    if let Some(symbol) = Symbol::parse(class, name) {
        return Some(Value::Symbol(symbol));
    }
    let (_, constants) = CONSTANTS.iter().find(|(known, _)| *known == class)?;
    let (_, constant) = constants.iter().find(|(known, _)| *known == name)?;
    Some(match constant {
        Constant::Text(text) => Value::text(*text),
        Constant::Int(number) => Value::Int(*number),
    })
}

/// The names that are values by themselves.
pub fn bare_words() -> impl Iterator<Item = &'static str> {
    let symbols = ENUMERATIONS.iter().flat_map(|(_, values)| *values);
    ["null", "true", "false", "NaN", "Infinity", "from", "to"].into_iter().chain(symbols.copied())
}

/// The value of a name that stands by itself, such as `desc` or `null`.
pub fn bare_word(name: &str) -> Option<Value> {
    match name {
        "null" => return Some(Value::Null),
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        "NaN" => return Some(Value::Double(f64::NAN)),
        "Infinity" => return Some(Value::Double(f64::INFINITY)),
        _ => {}
    }
    ENUMERATIONS.iter().find_map(|(class, _)| member(class, name))
}
