//! The error of a build or a publication: a stable code, what happened, what to do, and the first wrong rows.

use crate::rows::{InferError, ReadError, RowError, RowErrors, RowFault, RowOptions, RowsError};
use kith_files::ValuesBuildError;
use kith_types::{ErrorCode, check_store_name};
use std::error::Error;
use thiserror::Error;

/// Why nothing was built or published. Everything that existed before is unchanged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct Failure {
    /// The stable code (`docs/errors.md`).
    pub code: ErrorCode,
    /// A description of the error and its cause.
    pub message: String,
    /// The advice. The text names flags of the command line.
    pub help: String,
    /// The first wrong rows or lines of refused files, one line each as in the files, followed by the number of further
    /// ones.
    pub wrong: Vec<String>,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into(), wrong: Vec::new() }
    }

    /// The failure for settings that are invalid or contradict each other.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message, help)
    }
}

/// Refuses a name that clusters do not accept.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Failure> {
    check_store_name(name).map_err(|error| {
        let message = format!("{:?} cannot name a {what}: its name is {}", error.name, error.rule);
        Failure::new(ErrorCode::InvalidName, message, "choose another name")
    })
}

/// An error with all its causes. A message that an outer one already contains is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
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

/// The failure for refused files.
pub(crate) fn rows(error: &RowsError) -> Failure {
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
        RowsError::MissingFields { .. } => {
            let help = "add the fields to the rows (null, or an empty cell, is a value), leave them out of the schema with \
                --schema FILE, or store their defaults or null in every record with --fill-missing";
            Failure::new(ErrorCode::BadInput, message, help)
        }
        RowsError::NoTimes { .. } => {
            let help = "name a field of type timestamp; an inferred schema has them only for times of Parquet and Arrow";
            Failure::new(ErrorCode::BadInput, message, help)
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

/// The failure for a build.
pub(crate) fn build(error: &ValuesBuildError) -> Failure {
    let message = chain(error);
    match error {
        ValuesBuildError::Duplicate { .. } => {
            let help = "remove one of the rows, or say which to keep: --duplicates first or last";
            Failure::new(ErrorCode::DuplicateKey, message, help)
        }
        _ => Failure::new(ErrorCode::BuildFailed, message, error.help()),
    }
}

/// The failure for a read that ended early, or for rows that a build refused.
pub(crate) fn read(error: ReadError<ValuesBuildError>, options: &RowOptions) -> Failure {
    match error {
        ReadError::Input(error) => refused_rows(&error, options),
        ReadError::Caller(error) => build(&error),
    }
}

/// The failure for refused files, like [`rows`], with the first wrong rows as written in the files.
pub(crate) fn refused_rows(error: &RowsError, options: &RowOptions) -> Failure {
    let wrong = match error {
        RowsError::BadRows { errors, .. } | RowsError::NoGoodRows { errors } => first(errors, options),
        _ => Vec::new(),
    };
    Failure { wrong, ..rows(error) }
}

fn first(errors: &RowErrors, options: &RowOptions) -> Vec<String> {
    let mut first: Vec<String> = errors.first.iter().map(ToString::to_string).collect();
    let more = errors.total().saturating_sub(errors.first.len() as u64);
    if 0 < more && 0 < options.errors_max {
        first.push(format!("and {more} more"));
    }
    first
}
