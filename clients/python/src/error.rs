//! Converts errors to `kith.KithError`, with the same code and help as in every client of Kith.

use kith_client::{QueryError, security::SecurityError};
use kith_types::ErrorCode;
use pyo3::prelude::*;
use std::{collections::HashMap, error::Error};

/// Returns the exception for a request that failed.
pub fn raised(error: &QueryError) -> PyErr {
    of(error.code(), &error.to_string(), &error.help())
}

/// Returns the exception for a certificate, key, authority or token file that cannot be used, worded as on the command line.
pub fn refused(error: &SecurityError) -> PyErr {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        message.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    of(error.code(), &message, error.help())
}

/// Returns the name of a code's exception class in `kith.errors`; `None` for the base class.
fn exception(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::DeadlineExceeded => Some("DeadlineExceeded"),
        ErrorCode::Overloaded => Some("Overloaded"),
        ErrorCode::Unreachable
        | ErrorCode::PartitionsUnavailable
        | ErrorCode::NoCluster
        | ErrorCode::ObjectStoreUnreachable
        | ErrorCode::TlsFailed
        | ErrorCode::TlsRequired => Some("Unreachable"),
        code if code.is_denial() => Some("Denied"),
        ErrorCode::UnknownStore
        | ErrorCode::UnknownGraph
        | ErrorCode::MemberNotFound
        | ErrorCode::EntityNotFound => Some("NotFound"),
        ErrorCode::BadRows
        | ErrorCode::NoRows
        | ErrorCode::DuplicateKey
        | ErrorCode::BadLines
        | ErrorCode::NoEdges
        | ErrorCode::NoEntities
        | ErrorCode::NoMembers
        | ErrorCode::NothingToLoad
        | ErrorCode::TooManyKinds
        | ErrorCode::InvalidName
        | ErrorCode::NameTaken
        | ErrorCode::BadInput
        | ErrorCode::BadSchema
        | ErrorCode::IncompatibleSchema => Some("Refused"),
        _ => None,
    }
}

/// Returns the names of the exception classes by the names of the codes, without codes of the base class.
pub fn classes() -> HashMap<&'static str, &'static str> {
    ErrorCode::ALL.iter().filter_map(|code| Some((code.name(), exception(*code)?))).collect()
}

/// Returns the exception with the given code, message and help.
pub fn of(code: ErrorCode, message: &str, help: &str) -> PyErr {
    refused_rows(code, message, help, Vec::new())
}

/// Returns the same exception as [`of`], with the first invalid rows of a refused input.
pub fn refused_rows(code: ErrorCode, message: &str, help: &str, wrong: Vec<String>) -> PyErr {
    Python::attach(|py| {
        let made = py.import("kith.errors").and_then(|errors| errors.getattr("error_of"));
        match made.and_then(|error_of| error_of.call1((code.name(), message, help, wrong))) {
            Ok(error) => PyErr::from_value(error),
            Err(broken) => broken,
        }
    })
}

/// Returns the exception for bytes of a store that cannot be decoded.
pub fn damaged(store: &str, detail: impl ToString) -> PyErr {
    raised(&QueryError::Damaged { store: store.to_owned(), detail: detail.to_string() })
}
