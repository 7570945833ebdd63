//! Steps that let traversers pass or not.

use super::{
    by,
    context::Context,
    cut, nested, path, reach, size,
    step::PART_EFFORT_MAX,
    traverser::{Batch, Traverser},
    weight, wheres,
};
use crate::{
    error::{GremlinError, Result},
    graph::WantedProperties,
    plan::{Condition, HasTest, Kind, Quantifier, TestedPart, Traversal},
    semantics::{Test, lists},
    value::{Token, Value},
};
use std::sync::Arc;

pub(super) async fn apply(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let passes: Vec<bool> = match kind {
        Kind::Is(test) => {
            batch.iter().map(|traverser| test.holds(&traverser.value)).collect::<Result<_>>()?
        }
        Kind::Filter { traversal, is_negated } => {
            let exists = nested::exists(traversal, &batch, context).await?;
            exists.into_iter().map(|exists| exists != *is_negated).collect()
        }
        Kind::LeadsTo(wanted) => {
            let leads = reach::leads_to(wanted, &batch, context).await?;
            leads.into_iter().map(|leads| leads != wanted.is_negated).collect()
        }
        Kind::Connective { traversals, is_and } => connective(traversals, *is_and, &batch, context).await?,
        Kind::Where(wanted) => wheres::compare(wanted, &batch, context).await?,
        Kind::WhereStart(label) => return wheres::start(label, batch, context),
        Kind::WhereEnd(label) => {
            batch.iter().map(|traverser| wheres::is_end(label, traverser, context)).collect::<Result<_>>()?
        }
        Kind::Members { quantifier, test } => {
            let mut passes = Vec::with_capacity(batch.len());
            for traverser in &batch {
                passes.push(members(*quantifier, test, &traverser.value, context).await?);
            }
            passes
        }
        Kind::Coin(probability) => return Ok(cut::coin(*probability, batch, context)),
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

/// `and` and `or`. A traversal is evaluated only for traversers about which those before it have not decided.
async fn connective(
    traversals: &[Traversal],
    is_and: bool,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    let mut passes = vec![is_and; batch.len()];
    let mut open: Vec<usize> = (0..batch.len()).collect();
    for traversal in traversals {
        if open.is_empty() {
            break;
        }
        context.work.room_for(open.len())?;
        let entered: Batch = open.iter().map(|at| batch[*at].clone()).collect();
        let exists = nested::exists(traversal, &entered, context).await?;
        open.iter().zip(&exists).for_each(|(at, exists)| passes[*at] = *exists);
        open.retain(|at| passes[*at] == is_and);
    }
    Ok(passes)
}

/// `all`, `any` and `none`: only lists pass.
async fn members(quantifier: Quantifier, test: &Test, value: &Value, context: &Context<'_>) -> Result<bool> {
    context.work.meter.room(size::members(value).saturating_mul(weight::VALUE_BYTES))?;
    let Some(members) = lists::values(value)? else { return Ok(false) };
    let wanted = quantifier != Quantifier::All;
    let mut effort = 0;
    for member in &members {
        if test.holds(member)? == wanted {
            context.work.note_effort(effort);
            return Ok(quantifier == Quantifier::Any);
        }
        effort += test.effort(member).saturating_mul(weight::effort(member));
        if PART_EFFORT_MAX < effort {
            effort = 0;
            context.work.give_way_now().await;
        }
    }
    context.work.note_effort(effort);
    Ok(quantifier != Quantifier::Any)
}

/// `has` and `hasNot`.
pub(super) async fn has(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let elements: Vec<&Value> = batch.iter().map(|traverser| &traverser.value).collect();
    let passes = match kind {
        Kind::HasKey { key, is_present } => {
            let properties =
                context.read_properties(&elements, &WantedProperties::Keys([key.clone()].into())).await?;
            properties.iter().map(|properties| properties.is_empty() != *is_present).collect()
        }
        Kind::Has(HasTest { subject, condition }) => {
            let values = subjects(subject, &elements, context).await?;
            match condition {
                Condition::Test(test) => {
                    let any = |values: &Vec<Value>| {
                        for value in values {
                            if test.holds(value)? {
                                return Ok(true);
                            }
                        }
                        Ok(false)
                    };
                    values.iter().map(any).collect::<Result<_>>()?
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
async fn subjects(
    subject: &TestedPart,
    elements: &[&Value],
    context: &Context<'_>,
) -> Result<Vec<Vec<Value>>> {
    match subject {
        TestedPart::Token(token @ (Token::Key | Token::Value)) => {
            let is_property = |it: &Value| matches!(it, Value::VertexProperty(_) | Value::Property(_));
            let value = |element: &&Value| match is_property(element) {
                true => Ok(vec![by::token(*token, element, context)?]),
                false => Ok(Vec::new()),
            };
            elements.iter().map(value).collect()
        }
        TestedPart::Token(token) => {
            Ok(by::tokens(*token, elements, context).await?.into_iter().map(|value| vec![value]).collect())
        }
        TestedPart::IdText => {
            let ids = by::tokens(Token::Id, elements, context).await?;
            Ok(ids.into_iter().map(|id| vec![Value::text(id.to_string())]).collect())
        }
        TestedPart::Property(key) => {
            let properties =
                context.read_properties(elements, &WantedProperties::Keys([Arc::clone(key)].into())).await?;
            let values =
                |properties: Vec<Value>| properties.iter().filter_map(by::property_value).cloned().collect();
            Ok(properties.into_iter().map(values).collect())
        }
    }
}
