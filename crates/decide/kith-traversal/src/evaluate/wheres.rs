//! `where`: conditions about the values of labels.

use super::{
    by,
    context::Context,
    scope,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::Result,
    plan::{Label, WhereFilter, WherePredicate},
    semantics::LastTest,
    value::{Pop, Value},
};

/// Traversers with the value of a label, for a condition that begins with the label.
pub(super) fn start(label: &str, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    batch.iter().map(|traverser| Ok(traverser.to(scope::last(label, traverser, context)?))).collect()
}

/// Whether a condition ends at the value of a label.
pub(super) fn is_end(label: &str, traverser: &Traverser, context: &Context<'_>) -> Result<bool> {
    let wanted = scope::value(Pop::Last, &label.into(), traverser, context)?;
    Ok(wanted.is_some_and(|value| value == traverser.value))
}

/// Whether each traverser passes a predicate about labels. The `by` are used in turn: the first for the value that is compared,
/// the next for the values that it is compared with. A traverser for which one of them has no value does not pass.
pub(super) async fn compare(
    wanted: &WhereFilter,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    let mut labels = Vec::new();
    collect(&wanted.predicate, &mut labels);
    let _columns = context.work.meter.reserve(weight::of_rows(batch.len(), labels.len() + 1))?;
    let mut columns = Vec::with_capacity(labels.len() + 1);
    for (at, label) in std::iter::once(wanted.start.as_ref()).chain(labels.into_iter().map(Some)).enumerate()
    {
        let of = |traverser: &Traverser| match label {
            None => Ok(traverser.clone()),
            Some(label) => Ok(traverser.to(scope::last(label, traverser, context)?)),
        };
        let entered = batch.iter().map(of).collect::<Result<Batch>>()?;
        columns.push(by::in_turn(&wanted.by, at, &entered, context).await?);
    }
    let Some((left, operands)) = columns.split_first() else { return Ok(vec![true; batch.len()]) };
    let passes = judge(&wanted.predicate, left, &mut operands.iter(), context)?;
    let is_whole = |at: usize| columns.iter().all(|column| column[at].is_some());
    Ok(passes.into_iter().enumerate().map(|(at, passes)| passes && is_whole(at)).collect())
}

fn collect<'a>(predicate: &'a WherePredicate, labels: &mut Vec<&'a Label>) {
    match predicate {
        WherePredicate::Compare { labels: more, .. } => labels.extend(more),
        WherePredicate::And(all) | WherePredicate::Or(all) => all.iter().for_each(|one| collect(one, labels)),
        WherePredicate::Not(one) => collect(one, labels),
    }
}

/// Whether each value passes a predicate, which takes a column of operands for each of its labels. What is said of rows that
/// lack a value is of no account.
fn judge<'a>(
    predicate: &WherePredicate,
    left: &[Option<Value>],
    columns: &mut impl Iterator<Item = &'a Vec<Option<Value>>>,
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    match predicate {
        WherePredicate::Compare { relation, labels } => {
            let operands: Vec<_> = labels.iter().filter_map(|_| columns.next()).collect();
            let mut last = LastTest::default();
            let row = |(at, left): (usize, &Option<Value>)| {
                let operands: Option<Vec<Value>> = operands.iter().map(|column| column[at].clone()).collect();
                left.as_ref()
                    .zip(operands)
                    .map_or(Ok(false), |(left, all)| relation.holds(left, all, &mut last))
            };
            let passes = left.iter().enumerate().map(row).collect();
            context.work.note_effort(last.effort);
            passes
        }
        WherePredicate::And(all) => joined(all, true, left, columns, context),
        WherePredicate::Or(all) => joined(all, false, left, columns, context),
        WherePredicate::Not(one) => {
            Ok(judge(one, left, columns, context)?.into_iter().map(|passes| !passes).collect())
        }
    }
}

fn joined<'a>(
    all: &[WherePredicate],
    is_and: bool,
    left: &[Option<Value>],
    columns: &mut impl Iterator<Item = &'a Vec<Option<Value>>>,
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    let mut passes = vec![is_and; left.len()];
    for one in all {
        for (passes, one) in passes.iter_mut().zip(judge(one, left, columns, context)?) {
            *passes = if is_and { *passes && one } else { *passes || one };
        }
    }
    Ok(passes)
}
