//! Applies a checked plan to records, one after the other.

use super::computation::{Column, Computation, Source};
use super::{ComputeFault, Elements, Query, Score};
use crate::record::{FieldView, Piece, RecordError, ValueFault, assemble};
use crate::{ElementType, Incompatible, ProjectedView, Projection, ScalarType, Schema};

/// A plan for the records of one version. It is created once for many records and keeps no data of them.
#[derive(Clone, Debug)]
pub struct RecordPlan<'c> {
    pub(super) computation: &'c Computation,
    pub(super) projection: Projection,
}

/// The reason why a record has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoResult {
    /// An operator cannot be applied to the record. Every replica gives the same answer.
    Fault(ComputeFault),
    /// The bytes are not a record.
    Damaged(RecordError),
}

impl From<RecordError> for NoResult {
    fn from(error: RecordError) -> Self {
        NoResult::Damaged(error)
    }
}

impl From<ValueFault> for NoResult {
    fn from(fault: ValueFault) -> Self {
        NoResult::Damaged(RecordError::Projected(fault))
    }
}

impl Computation {
    /// Resolves it for records that were written under `writer`.
    ///
    /// # Errors
    /// [`Incompatible`] if the type of a field there does not widen to the reader's type.
    pub fn over(&self, writer: &Schema) -> Result<RecordPlan<'_>, Incompatible> {
        Ok(RecordPlan { computation: self, projection: Projection::resolve(writer, &self.inputs)? })
    }
}

impl RecordPlan<'_> {
    /// The computation that it runs.
    pub fn computation(&self) -> &Computation {
        self.computation
    }

    /// Appends the result for a record, which is a record of [`Computation::result`]. Reads only the fields that the plan
    /// names.
    ///
    /// # Errors
    /// [`NoResult`] if there is no result; `out` is unchanged then.
    pub fn write(&self, record: &[u8], out: &mut Vec<u8>) -> Result<(), NoResult> {
        let view = self.projection.view(record)?;
        let start = out.len();
        let layout = self.computation.result().layout();
        let done = assemble(layout, out, |index| column(&view, &self.computation.columns[index]));
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    /// Computes only the score of a record; `None` if it is null. It fails for the same faults as [`RecordPlan::write`], so
    /// that the outcome of a key does not depend on the records that it is ranked against.
    ///
    /// # Errors
    /// [`NoResult`] if there is no result.
    pub fn score(&self, record: &[u8]) -> Result<Option<Score>, NoResult> {
        let view = self.projection.view(record)?;
        for Column { input, source } in &self.computation.columns {
            if let Source::Dot { operator, query }
            | Source::Cosine { operator, query }
            | Source::Hadamard { operator, query } = source
            {
                vector(&view, *input, *operator, query)?;
            }
        }
        let Some(index) = self.computation.score_column() else { return Ok(None) };
        let by = &self.computation.columns[index];
        let field_type = self.computation.result().fields()[index].field_type();
        let piece = column(&view, by)?;
        let Some(piece) = piece else { return Ok(None) };
        let value = FieldView::of(field_type, piece.bytes()).map_err(|why| {
            let field = self.computation.result().fields()[index].name().to_owned();
            RecordError::DamagedField { field, why }
        })?;
        Ok(value.as_scalar().and_then(Score::of))
    }
}

/// The encoded value of a field of the result.
fn column<'a>(view: &ProjectedView<'a>, column: &Column) -> Result<Option<Piece<'a>>, NoResult> {
    let number = |value: f64| Piece::Wide(value.to_le_bytes());
    let input = column.input;
    Ok(match &column.source {
        Source::Copy => view.piece(input)?,
        Source::Dot { operator, query } => {
            vector(view, input, *operator, query)?.map(|vector| number(query.dot(vector)))
        }
        Source::Cosine { operator, query } => {
            vector(view, input, *operator, query)?.and_then(|vector| query.cosine(vector)).map(number)
        }
        Source::Hadamard { operator, query } => vector(view, input, *operator, query)?.map(|vector| {
            let mut products = Vec::with_capacity(query.dimensions() * 8);
            query.products(vector, &mut products);
            Piece::Owned(products)
        }),
        Source::Count => {
            let count = match view.at(input)? {
                Some(FieldView::List(list)) => list.len(),
                Some(FieldView::Map(map)) => map.len(),
                Some(FieldView::Vector(vector)) => vector.dimensions(),
                Some(FieldView::Scalar(_)) | None => 0,
            };
            Some(Piece::Wide((count as u64).to_le_bytes()))
        }
    })
}

/// The vector of a field, which must be as long as the query; `None` if it is null or empty.
fn vector<'a>(
    view: &ProjectedView<'a>,
    input: usize,
    operator: u32,
    query: &Query,
) -> Result<Option<Elements<'a>>, NoResult> {
    let elements = match view.at(input)? {
        Some(FieldView::Vector(vector)) => match vector.element() {
            ElementType::F32 => Elements::F32(vector.bytes()),
            ElementType::F16 => Elements::F16(vector.bytes()),
            ElementType::I8 => Elements::I8(vector.bytes()),
        },
        Some(FieldView::List(list)) if list.item_type() == ScalarType::F64 => Elements::F64(list.body()),
        Some(FieldView::List(list)) => Elements::F32(list.body()),
        // The check of the plan excludes these.
        Some(FieldView::Scalar(_) | FieldView::Map(_)) | None => return Ok(None),
    };
    match (elements.count(), query.dimensions()) {
        (0, _) => Ok(None),
        (got, want) if got == want => Ok(Some(elements)),
        (got, want) => Err(NoResult::Fault(ComputeFault { operator, want: want as u32, got: got as u32 })),
    }
}
