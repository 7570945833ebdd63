//! Steps that let traversers pass or not.

use super::{
    by,
    context::Context,
    cut, nested,
    new::id_of,
    path, reach, size,
    step::PART_EFFORT_MAX,
    traverser::{Batch, Traverser},
    weight, wheres,
};
use crate::{
    error::{GremlinError, Result},
    graph::{ElementTest, WantedProperties},
    plan::{Condition, HasTest, Kind, Quantifier, TestedPart, Traversal},
    semantics::{Test, lists},
    value::{ElementId, Token, Value},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

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
        Kind::Has(HasTest { subject, condition: Condition::Traversal(traversal) }) => {
            let values = subjects(subject, &elements, context).await?;
            let entered = |(at, values): (usize, Vec<Value>)| {
                let traverser = &batch[at];
                values.into_iter().map(move |value| Traverser { origin: at as u32, ..traverser.to(value) })
            };
            let entered: Batch = values.into_iter().enumerate().flat_map(entered).collect();
            let exists = nested::exists(traversal, &entered, context).await?;
            let mut passes = vec![false; batch.len()];
            let found = entered.iter().zip(exists).filter(|(_, exists)| *exists);
            found.for_each(|(traverser, _)| passes[traverser.origin as usize] = true);
            passes
        }
        kind => {
            let is_repeated = batch.iter().any(|traverser| !traverser.loops.is_empty());
            tested(kind, &elements, is_repeated, context).await?
        }
    };
    Ok(kept(batch, &passes))
}

/// Which elements pass the tests of a `has`. The graph tests vertices, once each for all tests. In a `repeat` that changes
/// nothing, the verdicts are remembered, because many paths lead to the same vertices.
async fn tested(
    kind: &Kind,
    elements: &[&Value],
    is_repeated: bool,
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    let tests = kind.has_tests();
    let element_tests: Option<Arc<[ElementTest]>> = tests.iter().map(HasTest::element_test).collect();
    let element_tests = element_tests.filter(|tests| tests.iter().any(|test| test.key.is_some()));
    let is_asked = |element: &Value| {
        element_tests.is_some() && matches!(element, Value::Vertex(vertex) if vertex.properties.is_none())
    };
    let (asked, own): (Vec<usize>, Vec<usize>) = (0..elements.len()).partition(|at| is_asked(elements[*at]));
    let mut passes = vec![true; elements.len()];
    for HasTest { subject, condition } in tests {
        let Condition::Test(test) = condition else { continue };
        let open: Vec<usize> = own.iter().copied().filter(|at| passes[*at]).collect();
        let some: Vec<&Value> = open.iter().map(|at| elements[*at]).collect();
        let is_id = matches!(subject, TestedPart::IdText | TestedPart::Token(Token::Id));
        if let Some(wanted) = test.equal_values().filter(|_| is_id) {
            let named = named(wanted, &some, context).await?;
            open.iter().zip(named).for_each(|(at, is_named)| passes[*at] = is_named);
            let rest = open.iter().zip(&some).filter(|(at, _)| !passes[**at]);
            let (rest, others): (Vec<usize>, Vec<&Value>) = rest.map(|(at, value)| (*at, *value)).unzip();
            for (at, values) in rest.into_iter().zip(subjects(subject, &others, context).await?) {
                passes[at] = test.holds(values.first().unwrap_or(&Value::Null))?;
            }
            continue;
        }
        for (at, values) in open.into_iter().zip(subjects(subject, &some, context).await?) {
            let any = values.iter().map(|value| test.holds(value));
            passes[at] = any.collect::<Result<Vec<_>>>()?.into_iter().any(|holds| holds);
        }
    }
    let Some(element_tests) = element_tests.filter(|_| !asked.is_empty()) else { return Ok(passes) };
    let remembers = is_repeated && context.is_read_only;
    let step = std::ptr::from_ref(kind).addr();
    let id =
        |at: &usize| if let Value::Vertex(vertex) = elements[*at] { vertex.id.clone() } else { Value::Null };
    let ids: Vec<ElementId> = asked.iter().map(id).collect();
    let mut known: HashMap<ElementId, bool> = match remembers {
        true => context.verdicts.of(step, &ids),
        false => HashMap::new(),
    };
    let mut seen: HashSet<&ElementId> = HashSet::new();
    let unknown = ids.iter().filter(|id| !known.contains_key(*id) && seen.insert(id));
    let unknown: Vec<ElementId> = unknown.cloned().collect();
    if !unknown.is_empty() {
        let found = context.graph.passing(unknown.clone(), element_tests).await?;
        context.work.count_elements(found.len())?;
        if remembers {
            context.verdicts.remember(step, unknown.iter().zip(&found), &context.work.meter)?;
        }
        known.extend(unknown.into_iter().zip(found));
    }
    for (at, id) in asked.into_iter().zip(&ids) {
        passes[at] = known.get(id).copied().unwrap_or(false);
    }
    Ok(passes)
}

/// Which of these elements are vertices whose ids were given to them, and that one of the wanted ids names, in whatever type it
/// is written. As for `V`, the number that the graph has computed from an id names the vertex too.
async fn named(wanted: &[Value], elements: &[&Value], context: &Context<'_>) -> Result<Vec<bool>> {
    context.learn_ids(elements).await?;
    let wanted: HashSet<String> = wanted.iter().map(|id| id_of(id).to_string()).collect();
    let is_named = |element: &&Value| {
        let Value::Vertex(vertex) = element else { return false };
        let shown = context.shown_id(vertex);
        shown != vertex.id && (wanted.contains(&shown.to_string()) || wanted.contains(&vertex.id.to_string()))
    };
    Ok(elements.iter().map(is_named).collect())
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
