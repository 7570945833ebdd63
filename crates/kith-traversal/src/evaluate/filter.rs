//! Steps that let traversers pass or not.

use super::{
    by,
    context::Context,
    cut, nested, path, reach,
    traverser::{Batch, Traverser},
    wheres,
};
use crate::{
    error::{GremlinError, Result},
    graph::Wanted,
    plan::{Condition, HasTest, Kind, Quantifier, Subject},
    semantics::{Test, lists},
    value::{Token, Value},
};
use std::sync::Arc;

pub(super) async fn apply(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let passes: Vec<bool> = match kind {
        Kind::Is(test) => batch.iter().map(|traverser| test.is_true(&traverser.value)).collect(),
        Kind::Filter { traversal, is_negated } => {
            let exists = nested::exists(traversal, &batch, context).await?;
            exists.into_iter().map(|exists| exists != *is_negated).collect()
        }
        Kind::LeadsTo(wanted) => {
            let leads = reach::leads_to(wanted, &batch, context).await?;
            leads.into_iter().map(|leads| leads != wanted.is_negated).collect()
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
        Kind::Where(wanted) => wheres::compare(wanted, &batch, context).await?,
        Kind::WhereStart(label) => return wheres::start(label, batch, context),
        Kind::WhereEnd(label) => {
            batch.iter().map(|traverser| wheres::is_end(label, traverser, context)).collect()
        }
        Kind::Members { quantifier, test } => {
            let members = |traverser: &Traverser| members(*quantifier, test, &traverser.value);
            batch.iter().map(members).collect::<Result<_>>()?
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

/// `all`, `any` and `none`: only lists pass.
fn members(quantifier: Quantifier, test: &Test, value: &Value) -> Result<bool> {
    let Some(members) = lists::values(value)? else { return Ok(false) };
    Ok(match quantifier {
        Quantifier::All => members.iter().all(|member| test.is_true(member)),
        Quantifier::Any => members.iter().any(|member| test.is_true(member)),
        Quantifier::None => !members.iter().any(|member| test.is_true(member)),
    })
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
        Subject::Token(token @ (Token::Key | Token::Value)) => {
            let is_property = |it: &Value| matches!(it, Value::VertexProperty(_) | Value::Property(_));
            let value = |element: &&Value| match is_property(element) {
                true => Ok(vec![by::token(*token, element, context)?]),
                false => Ok(Vec::new()),
            };
            elements.iter().map(value).collect()
        }
        Subject::Token(token) => {
            Ok(by::tokens(*token, elements, context).await?.into_iter().map(|value| vec![value]).collect())
        }
        Subject::IdText => {
            let ids = by::tokens(Token::Id, elements, context).await?;
            Ok(ids.into_iter().map(|id| vec![Value::text(id.to_string())]).collect())
        }
        Subject::Property(key) => {
            let properties = context.properties(elements, &Wanted::Keys([Arc::clone(key)].into())).await?;
            let values =
                |properties: Vec<Value>| properties.iter().filter_map(by::property_value).cloned().collect();
            Ok(properties.into_iter().map(values).collect())
        }
    }
}
