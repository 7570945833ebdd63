//! A checked plan over records, one after the other.

use super::computation::{Column, Computation, Source};
use super::{ComputeFault, Elements, Query, Score};
use crate::record::{FieldView, Piece, RecordError, ValueFault, assemble};
use crate::{ElementType, ProjectedView, Projection, ScalarType};

/// A plan over the records of one version. Made once for many records; holds nothing of them.
#[derive(Clone, Debug)]
pub struct Compute<'c> {
    pub(super) computation: &'c Computation,
    pub(super) projection: Projection,
}

/// Why nothing came out of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// An operator cannot be carried out on it: every replica says so.
    Fault(ComputeFault),
    /// Its bytes are no record.
    Damaged(RecordError),
}

impl From<RecordError> for Stopped {
    fn from(error: RecordError) -> Self {
        Stopped::Damaged(error)
    }
}

impl From<ValueFault> for Stopped {
    fn from(fault: ValueFault) -> Self {
        Stopped::Damaged(RecordError::Projected(fault))
    }
}

impl Compute<'_> {
    /// What it carries out.
    pub fn computation(&self) -> &Computation {
        self.computation
    }

    /// Appends what comes out of a record, a record of [`Computation::result`]. Reads only the fields that the plan names.
    ///
    /// # Errors
    /// [`Stopped`]; `out` is then as it was.
    pub fn write(&self, record: &[u8], out: &mut Vec<u8>) -> Result<(), Stopped> {
        let view = self.projection.view(record)?;
        let start = out.len();
        let layout = self.computation.result().layout();
        let done = assemble(layout, out, |index| column(&view, &self.computation.columns[index]));
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    /// What a record is ranked by, without working out the rest; `None` if it is null. It stops for whatever [`Compute::write`] finds
    /// fault with, so that a key's state does not depend on which others it is ranked against.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn score(&self, record: &[u8]) -> Result<Option<Score>, Stopped> {
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

/// The coded value of a field of the result.
fn column<'a>(view: &ProjectedView<'a>, column: &Column) -> Result<Option<Piece<'a>>, Stopped> {
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

/// The vector of a field, as long as the query; `None` if null or empty.
fn vector<'a>(
    view: &ProjectedView<'a>,
    input: usize,
    operator: u32,
    query: &Query,
) -> Result<Option<Elements<'a>>, Stopped> {
    let elements = match view.at(input)? {
        Some(FieldView::Vector(vector)) => match vector.element() {
            ElementType::F32 => Elements::F32(vector.bytes()),
            ElementType::F16 => Elements::F16(vector.bytes()),
            ElementType::I8 => Elements::I8(vector.bytes()),
        },
        Some(FieldView::List(list)) if list.item_type() == ScalarType::F64 => Elements::F64(list.body()),
        Some(FieldView::List(list)) => Elements::F32(list.body()),
        // The check of the plan lets nothing else through.
        Some(FieldView::Scalar(_) | FieldView::Map(_)) | None => return Ok(None),
    };
    match (elements.count(), query.dimensions()) {
        (0, _) => Ok(None),
        (got, want) if got == want => Ok(Some(elements)),
        (got, want) => Err(Stopped::Fault(ComputeFault { operator, want: want as u32, got: got as u32 })),
    }
}
