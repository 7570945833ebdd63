//! Functions of values.

use super::{
    by,
    context::Context,
    nested, size,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::{GremlinError, Result},
    functions::{self, Expression, Part, Template},
    graph::WantedProperties,
    plan::{ByArgument, Function, Label, StepArgument},
    semantics::{
        lists::{self, Argument, ListFunction},
        number,
    },
    value::Value,
};

pub(super) async fn apply(function: &Function, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    match function {
        Function::Concat(given) => concat(given, batch, context).await,
        Function::Format { template, by } => format(template, by, batch, context).await,
        Function::DateDiff(given) => {
            let others = nested::given(given, &batch, context).await?;
            let of = |(traverser, other): (&Traverser, Option<Value>)| {
                Ok(traverser.to(functions::date_diff(&traverser.value, &other.unwrap_or_default())?))
            };
            batch.iter().zip(others).map(of).collect()
        }
        Function::Lists(function, given) => of_lists(*function, given, batch, context).await,
        function => {
            let mut reached = Batch::with_capacity(batch.len());
            for traverser in &batch {
                context.work.count_bytes(size::of_function(function, &traverser.value, context)?)?;
                context.work.pause().await;
                reached.push(traverser.to(of_value(function, &traverser.value)?));
            }
            Ok(reached)
        }
    }
}

fn of_value(function: &Function, value: &Value) -> Result<Value> {
    match function {
        Function::AsString(scope) => functions::as_string(value, *scope),
        Function::AsNumber(kind) => number::as_number(value, *kind),
        Function::AsBool => functions::as_bool(value),
        Function::AsDate => functions::as_date(value),
        Function::Text(function, scope) => function.apply(value, *scope),
        Function::Reverse => functions::reverse(value),
        Function::DateAdd { unit, amount } => functions::date_add(value, *unit, *amount),
        Function::Conjoin(separator) => lists::conjoin(value, separator),
        other => Err(GremlinError::bad(format!("{other:?} is not a function of one value"))),
    }
}

async fn concat(given: &[StepArgument], batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let _parts = context.work.meter.reserve(weight::of_rows(batch.len(), given.len()))?;
    let mut parts: Vec<Vec<Value>> = vec![Vec::new(); batch.len()];
    for given in given {
        let values = nested::given(given, &batch, context).await?;
        parts.iter_mut().zip(values).for_each(|(parts, value)| parts.push(value.unwrap_or_default()));
    }
    let mut reached = Batch::with_capacity(batch.len());
    for (traverser, parts) in batch.iter().zip(parts) {
        context.work.count_bytes(size::of_texts(std::iter::once(&traverser.value).chain(&parts))?)?;
        context.work.pause().await;
        reached.push(traverser.to(functions::concat(&traverser.value, parts.iter())?));
    }
    Ok(reached)
}

async fn of_lists(
    function: ListFunction,
    given: &StepArgument,
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let others = nested::given(given, &batch, context).await?;
    let mut reached = Batch::with_capacity(batch.len());
    for (traverser, other) in batch.iter().zip(others) {
        let other = other.unwrap_or_default();
        let argument = match given {
            StepArgument::Value(_) => Argument::Literal(&other),
            _ => Argument::Yielded(&other),
        };
        context.work.count_bytes(size::of_lists(function, &traverser.value, &other, context)?)?;
        context.work.pause().await;
        reached.push(traverser.to(function.apply(&traverser.value, argument)?));
    }
    Ok(reached)
}

/// `format`. Traversers that lack a value of the template do not pass.
async fn format(
    template: &Template,
    by: &[ByArgument],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let _rows = context.work.meter.reserve(weight::of_rows(batch.len(), template.parts.len()))?;
    let mut rows: Vec<Option<Vec<Value>>> = vec![Some(Vec::new()); batch.len()];
    let mut turn = 0;
    for part in &template.parts {
        let values = match part {
            Part::Plain(_) => continue,
            Part::Modulated => {
                turn += 1;
                by::in_turn(by, turn - 1, &batch, context).await?
            }
            Part::Variable(name) => variable(name, &batch, context).await?,
        };
        for (row, value) in rows.iter_mut().zip(values) {
            *row = row.take().zip(value).map(|(mut row, value)| {
                row.push(value);
                row
            });
        }
    }
    let mut reached = Batch::new();
    for (traverser, row) in batch.iter().zip(rows) {
        if let Some(row) = row {
            context.work.count_bytes(size::of_template(template, &row)?)?;
            context.work.pause().await;
            reached.push(traverser.to(Value::text(template.render(row.iter()))));
        }
    }
    Ok(reached)
}

/// The meaning of a name for each traverser: a property of its element, or what has this label.
async fn variable(name: &Label, batch: &[Traverser], context: &Context<'_>) -> Result<Vec<Option<Value>>> {
    let elements: Vec<&Value> = batch.iter().map(|traverser| &traverser.value).collect();
    let properties = context.properties(&elements, &WantedProperties::Keys([name.clone()].into())).await?;
    // What is aside is the same for all traversers.
    let aside = context.side_effects.get(name, &context.work)?;
    let of = |(traverser, properties): (&Traverser, Vec<Value>)| {
        let property = properties.first().and_then(by::property_value).cloned();
        let entry = || match &traverser.value {
            Value::Map(map) => map.get(&Value::String(name.clone())).cloned(),
            _ => None,
        };
        let label = || traverser.labelled(name).last().map(|value| (*value).clone());
        property.or_else(entry).or_else(label).or_else(|| aside.clone())
    };
    Ok(batch.iter().zip(properties).map(of).collect())
}

/// `math`. The `by` are used in turn, one for each variable.
pub(super) async fn math(
    expression: &Expression,
    by: &[ByArgument],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let _rows = context.work.meter.reserve(weight::of_rows(batch.len(), expression.variables().len()))?;
    let mut rows: Vec<Option<Vec<f64>>> = vec![Some(Vec::new()); batch.len()];
    for (turn, name) in expression.variables().iter().enumerate() {
        let aside = context.side_effects.get(name, &context.work)?;
        let of = |traverser: &Traverser| match &**name {
            "_" => traverser.clone(),
            name => {
                let value = traverser.labelled(name).last().map(|value| (*value).clone());
                let entry = || match &traverser.value {
                    Value::Map(map) => map.get(&Value::text(name)).cloned(),
                    _ => None,
                };
                let value = value.or_else(entry).or_else(|| aside.clone());
                traverser.to(value.unwrap_or_default())
            }
        };
        let entered: Batch = batch.iter().map(of).collect();
        let values = by::in_turn(by, turn, &entered, context).await?;
        for (row, value) in rows.iter_mut().zip(values) {
            let number = match value {
                None => None,
                Some(value) => Some(double(&value, name)?),
            };
            *row = row.take().zip(number).map(|(mut row, number)| {
                row.push(number);
                row
            });
        }
    }
    let mut reached = Batch::new();
    for (traverser, row) in batch.iter().zip(rows) {
        if let Some(row) = row {
            reached.push(traverser.to(Value::Double(expression.evaluate(&row)?)));
        }
    }
    Ok(reached)
}

fn double(value: &Value, name: &str) -> Result<f64> {
    number::to_double(value).ok_or_else(|| {
        GremlinError::bad(format!(
            "The variable {name} for math() step must resolve to a Number - it is instead of type {}",
            value.type_name()
        ))
    })
}
