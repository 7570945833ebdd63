//! Steps that let traversers pass or not.

use super::{
    by,
    chain::Upstream,
    context::Context,
    nested, path,
    state::by_origin,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    graph::Wanted,
    plan::{By, Condition, HasTest, Kind, Label, Quantifier, Subject, Where, WherePredicate},
    predicate::Predicate,
    semantics::{Test, number},
    value::{GType, Token, Value},
};
use rand::RngExt;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

pub(super) async fn apply(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let passes: Vec<bool> = match kind {
        Kind::Is(test) => batch.iter().map(|traverser| test.is_true(&traverser.value)).collect(),
        Kind::Filter { traversal, is_negated } => {
            let exists = nested::exists(traversal, &batch, context).await?;
            exists.into_iter().map(|exists| exists != *is_negated).collect()
        }
        Kind::Connective { traversals, is_and } => {
            let mut passes = vec![*is_and; batch.len()];
            for traversal in traversals {
                let exists = nested::exists(traversal, &batch, context).await?;
                for (passes, exists) in passes.iter_mut().zip(exists) {
                    *passes = if *is_and { *passes && exists } else { *passes || exists };
                }
            }
            passes
        }
        Kind::Where(wanted) => compare(wanted, &batch, context).await?,
        Kind::WhereStart(label) => return start(label, batch, context),
        Kind::WhereEnd(label) => batch.iter().map(|traverser| is_end(label, traverser, context)).collect(),
        Kind::Members { quantifier, test } => {
            batch.iter().map(|traverser| members(*quantifier, test, &traverser.value)).collect()
        }
        Kind::Coin(probability) => return Ok(coin(*probability, batch, context)),
        Kind::SimplePath { is_simple, between, by } => {
            path::simple(*is_simple, between, by, &batch, context).await?
        }
        other => return Err(GremlinError::bad(format!("{other:?} is not a filter"))),
    };
    Ok(kept(batch, &passes))
}

fn kept(batch: Batch, passes: &[bool]) -> Batch {
    batch.into_iter().zip(passes).filter_map(|(traverser, passes)| passes.then_some(traverser)).collect()
}

/// `all`, `any` and `none`: only lists pass.
fn members(quantifier: Quantifier, test: &Test, value: &Value) -> bool {
    let Some(members) = super::local::members(value) else { return false };
    match quantifier {
        Quantifier::All => members.iter().all(|member| test.is_true(member)),
        Quantifier::Any => members.iter().any(|member| test.is_true(member)),
        Quantifier::None => !members.iter().any(|member| test.is_true(member)),
    }
}

/// `has` and `hasNot`.
pub(super) async fn has(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let elements: Vec<&Value> = batch.iter().map(|traverser| &traverser.value).collect();
    let passes = match kind {
        Kind::HasKey { key, is_present } => {
            let properties = context.properties(&elements, &Wanted::Keys([key.clone()].into())).await?;
            properties.iter().map(|properties| properties.is_empty() != *is_present).collect()
        }
        Kind::Has(HasTest { subject, condition }) => {
            let values = subjects(subject, &elements, context).await?;
            match condition {
                Condition::Test(test) => {
                    values.iter().map(|values| values.iter().any(|value| test.is_true(value))).collect()
                }
                Condition::Traversal(traversal) => {
                    let entered = |(at, values): (usize, Vec<Value>)| {
                        let traverser = &batch[at];
                        values
                            .into_iter()
                            .map(move |value| Traverser { origin: at as u32, ..traverser.to(value) })
                    };
                    let entered: Batch = values.into_iter().enumerate().flat_map(entered).collect();
                    let exists = nested::exists(traversal, &entered, context).await?;
                    let mut passes = vec![false; batch.len()];
                    let found = entered.iter().zip(exists).filter(|(_, exists)| *exists);
                    found.for_each(|(traverser, _)| passes[traverser.origin as usize] = true);
                    passes
                }
            }
        }
        other => return Err(GremlinError::bad(format!("{other:?} is not a filter of elements"))),
    };
    Ok(kept(batch, &passes))
}

/// The values that `has` looks at, for each element.
async fn subjects(subject: &Subject, elements: &[&Value], context: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    match subject {
        Subject::Token(token) => elements.iter().map(|element| token_of(*token, element)).collect(),
        Subject::Property(key) => {
            let properties = context.properties(elements, &Wanted::Keys([Arc::clone(key)].into())).await?;
            let values =
                |properties: Vec<Value>| properties.iter().filter_map(by::property_value).cloned().collect();
            Ok(properties.into_iter().map(values).collect())
        }
    }
}

fn token_of(token: Token, element: &Value) -> Result<Vec<Value>> {
    let is_property = matches!(element, Value::VertexProperty(_) | Value::Property(_));
    match token {
        Token::Key | Token::Value if !is_property => Ok(Vec::new()),
        token => Ok(vec![by::token(token, element)?]),
    }
}

/// A traverser with the value of a label, for a condition that begins with the label.
fn start(label: &str, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let of = |traverser: &Traverser| {
        let value = labelled(label, traverser, context);
        value.map(|value| traverser.to(value)).ok_or_else(|| unknown_label(label))
    };
    batch.iter().map(of).collect()
}

fn unknown_label(label: &str) -> GremlinError {
    GremlinError::bad(format!("no step before this one has the label {label:?}"))
}

/// Whether a condition ends at the value of a label.
fn is_end(label: &str, traverser: &Traverser, context: &Context<'_>) -> bool {
    labelled(label, traverser, context).is_some_and(|value| value == traverser.value)
}

/// The last value of a label, or a side effect with this name.
fn labelled(label: &str, traverser: &Traverser, context: &Context<'_>) -> Option<Value> {
    traverser.labelled(label).last().map(|value| (*value).clone()).or_else(|| context.side_effect(label))
}

/// `where` with a predicate about labels. The `by` are used in turn: the first for the value that is compared, the next for the
/// values that it is compared with.
async fn compare(wanted: &Where, batch: &[Traverser], context: &Context<'_>) -> Result<Vec<bool>> {
    let mut labels = Vec::new();
    collect(&wanted.predicate, &mut labels);
    let mut left = Batch::with_capacity(batch.len());
    for traverser in batch {
        left.push(match &wanted.start {
            None => traverser.clone(),
            Some(label) => {
                traverser.to(labelled(label, traverser, context).ok_or_else(|| unknown_label(label))?)
            }
        });
    }
    let left = by::in_turn(&wanted.by, 0, &left, context).await?;
    let mut right: Vec<Vec<Option<Value>>> = vec![Vec::new(); batch.len()];
    for (at, label) in labels.iter().enumerate() {
        let of = |traverser: &Traverser| {
            let value = labelled(label, traverser, context);
            value.map(|value| traverser.to(value)).ok_or_else(|| unknown_label(label))
        };
        let entered = batch.iter().map(of).collect::<Result<Batch>>()?;
        let values = by::in_turn(&wanted.by, at + 1, &entered, context).await?;
        right.iter_mut().zip(values).for_each(|(row, value)| row.push(value));
    }
    let passes = |(left, right): (Option<Value>, Vec<Option<Value>>)| match left {
        None => Ok(false),
        Some(left) => passes(&wanted.predicate, &left, &mut right.into_iter()),
    };
    left.into_iter().zip(right).map(passes).collect()
}

fn collect<'a>(predicate: &'a WherePredicate, labels: &mut Vec<&'a Label>) {
    match predicate {
        WherePredicate::Compare { labels: more, .. } => labels.extend(more),
        WherePredicate::And(all) | WherePredicate::Or(all) => all.iter().for_each(|one| collect(one, labels)),
        WherePredicate::Not(one) => collect(one, labels),
    }
}

/// Whether a value passes a predicate, whose labels have these values in their order.
fn passes(
    predicate: &WherePredicate,
    left: &Value,
    right: &mut dyn Iterator<Item = Option<Value>>,
) -> Result<bool> {
    match predicate {
        WherePredicate::Compare { operator, labels } => {
            let operands: Vec<Option<Value>> = labels.iter().filter_map(|_| right.next()).collect();
            let Some(operands) = operands.into_iter().collect::<Option<Vec<Value>>>() else {
                return Ok(false);
            };
            let operands = match (&**operator, &operands[..]) {
                // The value of a label may be a list of values.
                ("within" | "without", [only]) => super::local::members(only).unwrap_or(operands),
                _ => operands,
            };
            Ok(Test::compile(&Predicate { operator: operator.clone(), operands })?.is_true(left))
        }
        WherePredicate::And(all) => {
            all.iter().try_fold(true, |before, one| Ok(passes(one, left, right)? && before))
        }
        WherePredicate::Or(all) => {
            all.iter().try_fold(false, |before, one| Ok(passes(one, left, right)? || before))
        }
        WherePredicate::Not(one) => Ok(!passes(one, left, right)?),
    }
}

/// `range`, `limit` and `skip`, counted for each origin. A batch of bulked traversers may be cut in the middle of one.
pub(super) async fn range(
    (low, high): (i64, i64),
    passed: &mut HashMap<u32, i64>,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    let is_over = |passed: &HashMap<u32, i64>, origins: &[u32]| {
        high != -1 && origins.iter().all(|origin| passed.get(origin).copied().unwrap_or(0) >= high)
    };
    if is_over(passed, &upstream.origins()) {
        return Ok(None);
    }
    let Some(batch) = upstream.next(context).await? else { return Ok(None) };
    let mut kept = Batch::new();
    for traverser in batch {
        let before = passed.entry(traverser.origin).or_insert(0);
        let (from, to) = (*before, before.saturating_add(traverser.bulk));
        *before = to;
        let to = if high == -1 { to } else { to.min(high) };
        let bulk = to - from.max(low);
        if bulk > 0 {
            kept.push(Traverser { bulk, ..traverser });
        }
    }
    Ok(Some(kept))
}

/// `tail`: the last traversers of each origin.
pub(super) fn tail(count: i64, all: Batch) -> Batch {
    let mut left: HashMap<u32, i64> = HashMap::new();
    let mut kept = Batch::new();
    for traverser in all.into_iter().rev() {
        let left = left.entry(traverser.origin).or_insert(count);
        let bulk = traverser.bulk.min(*left);
        *left -= bulk;
        if bulk > 0 {
            kept.push(Traverser { bulk, ..traverser });
        }
    }
    kept.reverse();
    kept
}

/// `dedup`: traversers with a value, or values of labels, that has not come before.
pub(super) async fn dedup(
    labels: &[Label],
    by: &[By],
    seen: &mut HashMap<u32, HashSet<Value>>,
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let keys: Vec<Option<Value>> = if labels.is_empty() {
        by::in_turn(by, 0, &batch, context).await?
    } else {
        let mut keys: Vec<Option<Vec<Value>>> = vec![Some(Vec::new()); batch.len()];
        for (at, label) in labels.iter().enumerate() {
            let of = |traverser: &Traverser| {
                traverser.to(traverser
                    .labelled(label)
                    .last()
                    .map(|value| (*value).clone())
                    .unwrap_or_default())
            };
            let entered: Batch = batch.iter().map(of).collect();
            let values = by::in_turn(by, at, &entered, context).await?;
            for (key, value) in keys.iter_mut().zip(values) {
                *key = key.take().zip(value).map(|(mut key, value)| {
                    key.push(value);
                    key
                });
            }
        }
        keys.into_iter().map(|key| key.map(Value::list)).collect()
    };
    let mut is_new = |(traverser, key): (Traverser, Option<Value>)| {
        let is_new = seen.entry(traverser.origin).or_default().insert(key?);
        is_new.then_some(Traverser { bulk: 1, ..traverser })
    };
    Ok(batch.into_iter().zip(keys).filter_map(&mut is_new).collect())
}

/// `coin`: each traverser passes with this probability.
fn coin(probability: f64, batch: Batch, context: &Context<'_>) -> Batch {
    let mut random = context.random.lock();
    let mut bulk = |traverser: Traverser| {
        let bulk = (0..traverser.bulk).filter(|_| random.random::<f64>() < probability).count() as i64;
        (bulk > 0).then_some(Traverser { bulk, ..traverser })
    };
    batch.into_iter().filter_map(&mut bulk).collect()
}

/// `sample`: some traversers of each origin, drawn at random, those with a greater weight more often.
pub(super) async fn sample(count: i64, by: Option<&By>, all: Batch, context: &Context<'_>) -> Result<Batch> {
    let weights = match by {
        None => vec![Some(Value::Double(1.0)); all.len()],
        Some(by) => by::values(by, &all, context).await?,
    };
    let weighted = all.into_iter().zip(weights).filter_map(|(traverser, weight)| {
        match number::as_number(&weight?, Some(GType::Double)) {
            Ok(Value::Double(weight)) => Some((traverser, weight)),
            _ => None,
        }
    });
    let mut random = context.random.lock();
    // The weights decide about keys; the greatest keys are a weighted sample (Efraimidis and Spirakis, 2006).
    let mut keyed: Vec<(f64, Traverser)> = weighted
        .flat_map(|(traverser, weight)| {
            let one = Traverser { bulk: 1, ..traverser.clone() };
            (0..traverser.bulk.min(count)).map(move |_| (weight, one.clone()))
        })
        .map(|(weight, traverser)| (random.random::<f64>().powf(1.0 / weight), traverser))
        .collect();
    keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let origins = by_origin(keyed.into_iter().map(|(_, traverser)| traverser).collect());
    Ok(origins.into_values().flat_map(|batch| batch.into_iter().take(count.max(0) as usize)).collect())
}
