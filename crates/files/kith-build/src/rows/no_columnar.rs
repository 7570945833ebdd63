//! Stands in for `columnar` where the program is built without it: Parquet and Arrow are refused.

use crate::rows::error::RowsError;
use crate::rows::field::EachRow;
use crate::rows::options::RowOptions;
use crate::rows::seen::Seen;
use crate::rows::sink::{Halt, RowSink};
use crate::rows::source::RowSource;
use crate::rows::unpack::Unpacked;
use std::convert::Infallible;

fn refusal(unpacked: &Unpacked) -> RowsError {
    RowsError::NotBuilt { file: unpacked.file.clone() }
}

pub(crate) fn read(
    unpacked: Unpacked,
    _source: &dyn RowSource,
    _options: &RowOptions,
    _sink: &mut RowSink<'_>,
) -> Result<(), Halt> {
    Err(refusal(&unpacked).into())
}

pub(crate) fn infer(
    unpacked: Unpacked,
    _source: &dyn RowSource,
    _options: &RowOptions,
    _seen: &mut Seen,
) -> Result<(), RowsError> {
    Err(refusal(&unpacked))
}

/// Cannot be made.
pub(crate) struct FieldBatches(Infallible);

impl FieldBatches {
    pub(crate) fn open(
        unpacked: Unpacked,
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
