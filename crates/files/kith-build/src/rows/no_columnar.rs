//! Stands in for `columnar` where the program is built without it: Parquet and Arrow are refused.

use crate::rows::error::RowsError;
use crate::rows::field::EachRow;
use crate::rows::options::RowOptions;
use crate::rows::seen::SeenRows;
use crate::rows::sink::{Halt, RowSink};
use crate::rows::source::RowSource;
use crate::rows::unpack::UnpackedSource;
use std::convert::Infallible;

fn refusal(unpacked: &UnpackedSource) -> RowsError {
    RowsError::NotBuilt { file: unpacked.file.clone() }
}

pub(crate) fn read(
    unpacked: UnpackedSource,
    _source: &dyn RowSource,
    _options: &RowOptions,
    _sink: &mut RowSink<'_>,
) -> Result<(), Halt> {
    Err(refusal(&unpacked).into())
}

pub(crate) fn infer(
    unpacked: UnpackedSource,
    _source: &dyn RowSource,
    _options: &RowOptions,
    _seen: &mut SeenRows,
) -> Result<(), RowsError> {
    Err(refusal(&unpacked))
}

/// Cannot be made.
pub(crate) struct FieldBatches(Infallible);

impl FieldBatches {
    pub(crate) fn open(
        unpacked: UnpackedSource,
        _source: &dyn RowSource,
        _memory_bytes: u64,
    ) -> Result<Self, RowsError> {
        Err(refusal(&unpacked))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        match self.0 {}
    }

    pub(crate) fn rows(self, _columns: &[usize], _each: &mut EachRow<'_>) -> Result<(), RowsError> {
        match self.0 {}
    }
}
