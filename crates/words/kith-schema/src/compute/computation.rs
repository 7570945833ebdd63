//! A plan that was checked against a schema: its inputs and its result.

use super::{
    ComputeError, ComputeFunction, ComputeOperator, ComputePlan, OPERATORS_MAX, Query, Score, TOP_K_MAX, TopK,
};
use crate::{ElementType, Field, FieldType, ScalarType, Schema};

/// A checked plan. The same plan and schema always give the same computation.
#[derive(Clone, Debug)]
pub struct Computation {
    /// The fields to read, each once, in the order in which the plan first names them.
    pub(super) inputs: Schema,
    /// One column per field of `result`.
    pub(super) columns: Vec<Column>,
    result: Schema,
    best: Option<Best>,
}

/// The origin of a field of the result.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// The index of the input field.
    pub input: usize,
    pub source: Source,
}

#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The input field, unchanged.
    Copy,
    Dot {
        operator: u32,
        query: Query,
    },
    Cosine {
        operator: u32,
        query: Query,
    },
    Hadamard {
        operator: u32,
        query: Query,
    },
    Count,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    /// The index of the field of the result.
    column: usize,
    k: u32,
}

impl Computation {
    /// Checks `plan` against the schema of the records, or against the plan's own schema if it has one, which may differ
    /// from that of the records.
    ///
    /// # Errors
    /// [`ComputeError`] if the plan does not fit.
    pub fn new(plan: &ComputePlan, schema: &Schema) -> Result<Self, ComputeError> {
        Building::new(plan.reader.as_ref().unwrap_or(schema)).build(plan)
    }

    /// The schema of the results. Fields that may have no value are nullable, whatever the inputs are.
    pub fn result(&self) -> &Schema {
        &self.result
    }

    /// The plan that computes the same result for every record and not only for the best.
    pub fn uncut(&self, plan: &ComputePlan) -> ComputePlan {
        let mut uncut = ComputePlan { top_k: None, ..plan.clone() };
        // The ranking field is the last projected one if the plan does not name it.
        let copied = self.columns.iter().filter(|column| matches!(column.source, Source::Copy)).count();
        if plan.project.len() < copied {
            uncut.project.push(self.result.fields()[copied - 1].name().to_owned());
        }
        uncut
    }

    /// The number of best records to return; `None` for all records.
    pub fn k(&self) -> Option<usize> {
        self.best.map(|best| best.k as usize)
    }

    /// The index of the result field that ranks the records, if the best are wanted.
    pub(super) fn score_column(&self) -> Option<usize> {
        self.best.map(|best| best.column)
    }

    /// The score of a result; `None` if it is null, or if the plan has no `top_k`.
    ///
    /// # Errors
    /// [`crate::RecordError`] if the bytes are not a result of this computation.
    pub fn score(&self, result: &[u8]) -> Result<Option<Score>, crate::RecordError> {
        let Some(column) = self.score_column() else { return Ok(None) };
        let value = crate::RecordView::new(&self.result, result)?.at(column)?;
        Ok(value.and_then(|value| value.as_scalar()).and_then(Score::of))
    }
}

struct Building<'a> {
    schema: &'a Schema,
    inputs: Vec<Field>,
    columns: Vec<Column>,
    fields: Vec<Field>,
}

impl<'a> Building<'a> {
    fn new(schema: &'a Schema) -> Self {
        Self { schema, inputs: Vec::new(), columns: Vec::new(), fields: Vec::new() }
    }

    fn build(mut self, plan: &ComputePlan) -> Result<Computation, ComputeError> {
        in_range(
            "the number of operators",
            plan.operators.len() as u64,
            0..=OPERATORS_MAX as u64,
            "at most 128",
        )?;
        for field in &plan.project {
            self.project(field)?;
        }
        if let Some(by) = self.ranking_field(plan) {
            self.project(by)?;
        }
        for (index, operator) in (0..).zip(&plan.operators) {
            self.operator(index, operator)?;
        }
        let best = plan.top_k.as_ref().map(|top_k| self.best(top_k)).transpose()?;
        if self.fields.is_empty() {
            return Err(ComputeError::Nothing);
        }
        let inputs = Schema::new(self.inputs)?;
        Ok(Computation { inputs, columns: self.columns, result: Schema::new(self.fields)?, best })
    }

    fn project(&mut self, name: &str) -> Result<(), ComputeError> {
        let input = self.input(name)?;
        self.fields.push(self.inputs[input].clone());
        self.columns.push(Column { input, source: Source::Copy });
        Ok(())
    }

    fn operator(&mut self, index: u32, operator: &ComputeOperator) -> Result<(), ComputeError> {
        let input = self.input(&operator.field)?;
        let got = self.inputs[input].field_type();
        let wrong = |needs| ComputeError::WrongType {
            operator: operator.function.name(),
            field: operator.field.clone(),
            got,
            needs,
        };
        if let Some(query) = operator.function.query() {
            check_query(operator, got, query)?;
        }
        let (source, gives) = match &operator.function {
            ComputeFunction::Dot(query) => (
                Source::Dot { operator: index, query: Query::new(query) },
                FieldType::Scalar(ScalarType::F64),
            ),
            ComputeFunction::Cosine(query) => (
                Source::Cosine { operator: index, query: Query::new(query) },
                FieldType::Scalar(ScalarType::F64),
            ),
            ComputeFunction::Hadamard(query) => {
                let gives = match got {
                    FieldType::Vector { dimensions, .. } => {
                        FieldType::Vector { element: ElementType::F32, dimensions }
                    }
                    list => list,
                };
                (Source::Hadamard { operator: index, query: Query::new(query) }, gives)
            }
            ComputeFunction::Count => match got {
                FieldType::Scalar(_) => return Err(wrong("a list, map or vector")),
                _ => (Source::Count, FieldType::Scalar(ScalarType::U64)),
            },
        };
        let field = Field::new(operator.name.as_str(), gives);
        self.fields.push(if matches!(source, Source::Count) { field } else { field.nullable() });
        self.columns.push(Column { input, source });
        Ok(())
    }

    /// The ranking field, if it is a field of the records that the plan does not name otherwise.
    fn ranking_field<'p>(&self, plan: &'p ComputePlan) -> Option<&'p str> {
        let by = plan.top_k.as_ref()?.by.as_str();
        let is_named = plan.project.iter().any(|name| name == by)
            || plan.operators.iter().any(|operator| operator.name == by);
        (!is_named && self.schema.index_of(by).is_some()).then_some(by)
    }

    fn best(&self, TopK { by, k }: &TopK) -> Result<Best, ComputeError> {
        in_range("top_k.k", (*k).into(), 1..=TOP_K_MAX.into(), "1 to 100000")?;
        let Some(column) = self.fields.iter().position(|field| field.name() == by) else {
            let names = self.fields.iter().chain(self.schema.fields()).map(Field::name);
            return Err(ComputeError::UnknownScore { by: by.clone(), near: crate::nearest(by, names) });
        };
        match self.fields[column].field_type() {
            got if !Score::is_of(got) => Err(ComputeError::NoScore { by: by.clone(), got }),
            _ => Ok(Best { column, k: *k }),
        }
    }

    /// The index of the named field among the inputs. It may be null there unless it has a default, because a version may
    /// lack it.
    fn input(&mut self, name: &str) -> Result<usize, ComputeError> {
        if let Some(known) = self.inputs.iter().position(|field| field.name() == name) {
            return Ok(known);
        }
        let index = self.schema.index_of(name).ok_or_else(|| ComputeError::UnknownField {
            field: name.to_owned(),
            near: self.schema.nearest(name),
        })?;
        let field = self.schema.fields()[index].clone();
        self.inputs.push(if field.has_default() { field } else { field.nullable() });
        Ok(self.inputs.len() - 1)
    }
}

fn check_query(operator: &ComputeOperator, got: FieldType, query: &[f32]) -> Result<(), ComputeError> {
    let (name, field) = (operator.function.name(), || operator.field.clone());
    match got {
        FieldType::Vector { dimensions, .. } if query.len() == dimensions as usize => Ok(()),
        FieldType::Vector { dimensions: want, .. } => {
            Err(ComputeError::Dimensions { operator: name, field: field(), want, got: query.len() as u64 })
        }
        FieldType::List(ScalarType::F32 | ScalarType::F64) => in_range(
            "the length of a query",
            query.len() as u64,
            1..=crate::DIMENSIONS_MAX.into(),
            "1 to 65536",
        ),
        _ => Err(ComputeError::WrongType {
            operator: name,
            field: field(),
            got,
            needs: "a vector, or a list of f32 or f64",
        }),
    }
}

pub(super) fn in_range(
    what: &'static str,
    got: u64,
    within: std::ops::RangeInclusive<u64>,
    range: &'static str,
) -> Result<(), ComputeError> {
    if within.contains(&got) { Ok(()) } else { Err(ComputeError::OutOfRange { what, got, range }) }
}
