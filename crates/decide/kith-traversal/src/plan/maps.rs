//! Steps that turn a value into another, or many into one.

use super::{
    ByArgument, Kind, Reduction, anonymous,
    arguments::{Arguments, by, whole},
    calls::Call,
    modulators::{all_by, between, one_by},
};
use crate::{
    error::{GremlinError, Result},
    functions::Expression,
    value::{Operator, Order, Pop, Symbol, Value},
};

pub(super) fn compile(call: &Call<'_>) -> Result<Option<Vec<Kind>>> {
    let mut arguments = Arguments::of(call.instruction)?;
    let (kind, modulators): (Kind, &[&str]) = match call.name() {
        "map" => (Kind::Map(arguments.traversal("a traversal")?), &[]),
        "flatMap" => (Kind::FlatMap(arguments.traversal("a traversal")?), &[]),
        "constant" => (Kind::Constant(arguments.required("a value")?.clone()), &[]),
        "identity" => (Kind::Identity, &[]),
        // `as` at the beginning of a nested traversal.
        "as" => {
            arguments.rest();
            (Kind::Identity, &[])
        }
        "select" => (select(call, &mut arguments)?, &["by"]),
        "project" => (project(call, &mut arguments)?, &["by"]),
        "path" => (Kind::Path { between: between(call)?, by: all_by(call)? }, &["by", "from", "to"]),
        "unfold" => (Kind::Unfold, &[]),
        "fold" => (Kind::Fold(seed(&mut arguments)?), &[]),
        "count" => (reduction(Reduction::Count, &mut arguments), &[]),
        "sum" => (reduction(Reduction::Sum, &mut arguments), &[]),
        "mean" => (reduction(Reduction::Mean, &mut arguments), &[]),
        "min" => (reduction(Reduction::Min, &mut arguments), &[]),
        "max" => (reduction(Reduction::Max, &mut arguments), &[]),
        "order" => {
            let is_local = arguments.is_local();
            let by = order(call)?;
            (if is_local { Kind::OrderLocal(by) } else { Kind::Order(by) }, &["by"])
        }
        "index" => (Kind::Index { is_map: indexer(call)? }, &["with"]),
        "loops" => {
            (Kind::Loops(if arguments.is_empty() { None } else { Some(arguments.text("a name")?) }), &[])
        }
        "sack" => (sack(call, &mut arguments)?, &["by"]),
        "math" => {
            let text = arguments.text("an expression")?;
            (Kind::Math { expression: Expression::parse(&text)?, by: all_by(call)? }, &["by"])
        }
        _ => return Ok(None),
    };
    arguments.finish(call, modulators, kind)
}

fn select(call: &Call<'_>, arguments: &mut Arguments<'_>) -> Result<Kind> {
    if let Some(Value::Symbol(Symbol::Column(column))) = arguments.peek() {
        arguments.next();
        return Ok(Kind::SelectColumn(*column));
    }
    let pop = match arguments.peek() {
        Some(Value::Symbol(Symbol::Pop(pop))) => {
            arguments.next();
            *pop
        }
        _ => Pop::Last,
    };
    if let Some(Value::Traversal(bytecode)) = arguments.peek() {
        arguments.next();
        return Ok(Kind::SelectKeys { traversal: anonymous(bytecode)?, by: all_by(call)?, pop });
    }
    let labels = arguments.texts("labels")?;
    if labels.is_empty() {
        return Err(GremlinError::bad("select() needs a label, a column or a traversal"));
    }
    Ok(Kind::Select { pop, labels, by: all_by(call)? })
}

fn project(call: &Call<'_>, arguments: &mut Arguments<'_>) -> Result<Kind> {
    let keys = arguments.texts("keys")?;
    let is_twice = |at: usize| keys[..at].contains(&keys[at]);
    if keys.is_empty() {
        return Err(GremlinError::bad("project() needs keys"));
    }
    if let Some(at) = (0..keys.len()).find(|at| is_twice(*at)) {
        return Err(GremlinError::bad(format!("project() has the key {:?} twice", keys[at])));
    }
    Ok(Kind::Project { keys, by: all_by(call)? })
}

fn seed(arguments: &mut Arguments<'_>) -> Result<Option<(Value, Operator)>> {
    let Some(seed) = arguments.next() else { return Ok(None) };
    match arguments.required("an operator")? {
        Value::Symbol(Symbol::Operator(operator)) => Ok(Some((seed.clone(), *operator))),
        other => Err(GremlinError::bad(format!(
            "fold() needs an operator, not a value of type {}",
            other.type_name()
        ))),
    }
}

fn reduction(reduction: Reduction, arguments: &mut Arguments<'_>) -> Kind {
    if arguments.is_local() { Kind::ReduceLocal(reduction) } else { Kind::Reduce(reduction) }
}

/// The `by` of `order`: what is compared, and in which order. Without any, the values themselves in ascending order.
fn order(call: &Call<'_>) -> Result<Vec<(ByArgument, Order)>> {
    let one = |arguments: &[Value]| match arguments {
        [Value::Symbol(Symbol::Order(order))] => Ok((ByArgument::Identity, *order)),
        [value, Value::Symbol(Symbol::Order(order))] => Ok((by("by", Some(value))?, *order)),
        [] => Ok((ByArgument::Identity, Order::Ascending)),
        [value] => Ok((by("by", Some(value))?, Order::Ascending)),
        _ => {
            Err(GremlinError::bad("by() of order() takes a value and Order.asc, Order.desc or Order.shuffle"))
        }
    };
    let mut all: Vec<_> =
        call.modulators("by").map(|it| one(&it.instruction.arguments)).collect::<Result<_>>()?;
    if all.is_empty() {
        all.push((ByArgument::Identity, Order::Ascending));
    }
    Ok(all)
}

/// The key of `with` that says what `index` returns.
const INDEXER: &str = "~tinkerpop.index.indexer";

fn indexer(call: &Call<'_>) -> Result<bool> {
    let mut is_map = false;
    for modulator in call.modulators("with") {
        is_map = match &*modulator.instruction.arguments {
            [Value::String(key), kind] if &**key == INDEXER && matches!(whole(kind), Some(0 | 1)) => {
                whole(kind) == Some(1)
            }
            _ => {
                return Err(GremlinError::bad(
                    "index() takes with(WithOptions.indexer, WithOptions.list or .map)",
                ));
            }
        };
    }
    Ok(is_map)
}

fn sack(call: &Call<'_>, arguments: &mut Arguments<'_>) -> Result<Kind> {
    match arguments.next() {
        None => Ok(Kind::SackValue),
        Some(Value::Symbol(Symbol::Operator(operator))) => {
            Ok(Kind::SackUpdate { operator: *operator, by: one_by(call)?.unwrap_or(ByArgument::Identity) })
        }
        Some(other) => Err(GremlinError::bad(format!(
            "sack() takes an operator, not a value of type {}",
            other.type_name()
        ))),
    }
}
