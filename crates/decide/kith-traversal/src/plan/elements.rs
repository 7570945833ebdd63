//! Steps from and to elements.

use super::{
    EdgeEnd, Hop, Kind, PropertyMap,
    arguments::{Arguments, flat, whole},
    calls::Call,
    modulators::one_by,
};
use crate::{
    error::{GremlinError, Result},
    value::{Direction, ElementId, Symbol, Token, Value},
};

pub(super) fn compile(call: &Call<'_>) -> Result<Option<Vec<Kind>>> {
    let mut arguments = Arguments::of(call.instruction)?;
    let kind = match call.name() {
        "V" => Kind::Vertices { ids: ids(arguments.rest())? },
        "E" => Kind::Edges { ids: ids(arguments.rest())? },
        "inject" => Kind::Inject(arguments.rest().to_vec()),
        "out" => hop(Direction::Out, false, &mut arguments)?,
        "in" => hop(Direction::In, false, &mut arguments)?,
        "both" => hop(Direction::Both, false, &mut arguments)?,
        "outE" => hop(Direction::Out, true, &mut arguments)?,
        "inE" => hop(Direction::In, true, &mut arguments)?,
        "bothE" => hop(Direction::Both, true, &mut arguments)?,
        "to" => hop(direction(&mut arguments)?, false, &mut arguments)?,
        "toE" => hop(direction(&mut arguments)?, true, &mut arguments)?,
        "toV" => Kind::EdgeVertex(match direction(&mut arguments)? {
            Direction::Out => EdgeEnd::Out,
            Direction::In => EdgeEnd::In,
            Direction::Both => EdgeEnd::Both,
        }),
        "outV" => Kind::EdgeVertex(EdgeEnd::Out),
        "inV" => Kind::EdgeVertex(EdgeEnd::In),
        "bothV" => Kind::EdgeVertex(EdgeEnd::Both),
        "otherV" => Kind::EdgeVertex(EdgeEnd::Other),
        "id" => Kind::Token(Token::Id),
        "label" => Kind::Token(Token::Label),
        "key" => Kind::Token(Token::Key),
        "value" => Kind::Token(Token::Value),
        "properties" => Kind::Properties { keys: arguments.texts("keys")?, is_value: false },
        "values" => Kind::Properties { keys: arguments.texts("keys")?, is_value: true },
        "valueMap" => return property_map(call, arguments, true).map(|kind| Some(vec![kind])),
        "propertyMap" => return property_map(call, arguments, false).map(|kind| Some(vec![kind])),
        "elementMap" => Kind::ElementMap { keys: arguments.texts("keys")? },
        "element" => Kind::Element,
        _ => return Ok(None),
    };
    arguments.finish(call, &[], kind)
}

/// The ids that `V` or `E` looks up. Elements stand for their ids.
fn ids(values: &[Value]) -> Result<Vec<ElementId>> {
    let mut ids = Vec::with_capacity(values.len());
    for value in flat(values) {
        ids.push(match value {
            Value::Vertex(vertex) => vertex.id.clone(),
            Value::Edge(edge) => edge.id.clone(),
            Value::Predicate(_) | Value::Traversal(_) => {
                return Err(GremlinError::bad(format!("an id cannot be a {}", value.type_name())));
            }
            other => other,
        });
    }
    Ok(ids)
}

fn hop(direction: Direction, to_edges: bool, arguments: &mut Arguments<'_>) -> Result<Kind> {
    let has_null = arguments.has_null();
    let mut labels = arguments.texts("labels of edges")?;
    if labels.is_empty() && has_null {
        // Without labels, the hop would follow all edges. No edge has this label.
        labels.push("".into());
    }
    Ok(Kind::Hop(Hop { direction, labels: labels.into(), to_edges, tests: [].into(), top: None, pass: 0 }))
}

fn direction(arguments: &mut Arguments<'_>) -> Result<Direction> {
    match arguments.required("a direction")? {
        Value::Symbol(Symbol::Direction(direction)) => Ok(*direction),
        other => Err(GremlinError::bad(format!(
            "a direction is needed, not a value of type {}",
            other.type_name()
        ))),
    }
}

/// The key of `with` that adds to a map what an element has by nature, and its bits.
const TOKENS: &str = "~tinkerpop.valueMap.tokens";
const IDS: i64 = 1;
const LABELS: i64 = 2;
const KEYS: i64 = 4;
const VALUES: i64 = 8;
const ALL: i64 = IDS | LABELS | KEYS | VALUES;

fn property_map(call: &Call<'_>, mut arguments: Arguments<'_>, is_value: bool) -> Result<Kind> {
    call.allow(&["by", "with"])?;
    let mut tokens = match arguments.peek() {
        Some(Value::Bool(all)) => {
            arguments.next();
            if *all { ALL } else { 0 }
        }
        _ => 0,
    };
    for modulator in call.modulators("with") {
        tokens = match &*modulator.instruction.arguments {
            [Value::String(key)] if &**key == TOKENS => ALL,
            [Value::String(key), bits] if &**key == TOKENS => whole(bits).unwrap_or(ALL),
            _ => return Err(GremlinError::unsupported(format!("this option of {}()", call.name()))),
        };
    }
    let keys = arguments.texts("keys")?;
    let by = one_by(call)?;
    Ok(Kind::PropertyMap(PropertyMap {
        keys,
        is_value,
        with_id: tokens & IDS != 0,
        with_label: tokens & LABELS != 0,
        with_key: tokens & KEYS != 0,
        with_value: tokens & VALUES != 0,
        by,
    }))
}
