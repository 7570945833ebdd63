//! Why nothing was built or published: a stable code, what happened, what to do, and the first wrong rows.

use kith_load::ValuesBuildError;
use kith_rows::{ReadError, RowError, RowErrors, RowFault, RowOptions, RowsError};
use kith_schema::InferError;
use kith_types::{ErrorCode, check_store_name};
use std::error::Error;
use thiserror::Error;

/// Why nothing was built or published. What was there before is as it was.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct Failure {
    /// The stable code (`docs/errors.md`).
    pub code: ErrorCode,
    /// What happened, and why.
    pub message: String,
    /// What to do; it names flags of the command line.
    pub help: String,
    /// The first wrong rows or lines of files that are refused, a line each as in the files, and then how many more there are.
    pub wrong: Vec<String>,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into(), wrong: Vec::new() }
    }

    /// Settings that contradict each other or make no sense.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message, help)
    }
}

/// Refuses a name that no cluster would take.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Failure> {
    check_store_name(name).map_err(|error| {
        let message = format!("{:?} cannot name a {what}: its name is {}", error.name, error.rule);
        Failure::new(ErrorCode::InvalidName, message, "choose another name")
    })
}

/// An error with all its causes. Those that repeat their cause are told once.
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

/// Files that are refused.
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

/// A reading that ended early, or rows that a build refused.
pub(crate) fn read(error: ReadError<ValuesBuildError>, options: &RowOptions) -> Failure {
    match error {
        ReadError::Input(error) => refused_rows(&error, options),
        ReadError::Caller(error) => build(&error),
    }
}

/// As [`rows`], with the first wrong rows as they are in the files.
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
