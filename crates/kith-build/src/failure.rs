//! What a user is told when rows are refused or a version cannot be built.

use crate::failure::Failure;
use kith_engine::load::ValuesBuildError;
use kith_rows::{RowError, RowFault, RowsError};
use kith_schema::InferError;
use kith_types::ErrorCode;
use std::error::Error;

/// An error with all its causes. Those that repeat their cause are told once.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text += &format!(": {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// Files that are refused.
pub fn rows(error: &RowsError) -> Failure {
    let message = chain(error);
    match error {
        RowsError::BadRows { errors, .. } => {
            let fits_not = |error: &RowError| matches!(error.fault, RowFault::Record(_));
            let help = if errors.first.iter().all(fits_not) {
                "they do not fit the schema, which `kith store describe` shows: correct them, or push them to a store of another schema"
            } else {
                "correct them, or drop some with --max-errors"
            };
            Failure::new(ErrorCode::BadRows, message, help)
        }
        RowsError::NoGoodRows { .. } => Failure::new(
            ErrorCode::NoRows,
            message,
            "nothing was changed; correct the rows, or the flags about them",
        ),
        RowsError::Infer(fault) => {
            let help = match **fault {
                InferError::Json { .. } => {
                    "correct the row, or name the member that is the key with --key-field: then the rest of the object is the record"
                }
                InferError::NoFields { .. } => "records have a field besides their key: add one to the rows",
                _ => "say what the fields are with --schema FILE",
            };
            Failure::new(ErrorCode::BadSchema, message, help)
        }
        RowsError::Schema(_) => {
            Failure::new(ErrorCode::BadSchema, message, "say what the fields are with --schema FILE")
        }
        RowsError::UnknownColumn { .. } => {
            let help = "leave the column out, or give a schema that has it with --schema FILE";
            Failure::new(ErrorCode::BadInput, message, help)
        }
        _ => Failure::new(
            ErrorCode::BadInput,
            message,
            "nothing was built; correct the file or the flags about it",
        ),
    }
}

/// A build that failed.
pub fn build(error: &ValuesBuildError) -> Failure {
    let message = chain(error);
    match error {
        ValuesBuildError::Duplicate { .. } => {
            let help = "remove one of the rows, or say which to keep: --duplicates first or last";
            Failure::new(ErrorCode::DuplicateKey, message, help)
        }
        _ => Failure::new(ErrorCode::BuildFailed, message, error.help()),
    }
}
