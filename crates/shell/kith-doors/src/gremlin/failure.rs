//! Errors as answers.

use super::UNDER_WAY_MAX;
use kith_gremlin::{GremlinError, message::Response, value::Value};
use kith_query::QueryError;
use kith_types::ErrorCode;
use uuid::Uuid;

/// The names of the status attributes that say what to do about an error, and when to try again.
const HELP: &str = "kith.help";
const RETRY_AFTER_MS: &str = "kith.retry_after_ms";

/// The answer to a request that failed. Most drivers show only the message, so it has the help too.
pub(super) fn failure(id: Option<Uuid>, error: &QueryError) -> Response {
    let (message, help) = match error {
        // Its help is about the requests of `kith run`.
        QueryError::BadRequest { detail } => (detail.clone(), String::new()),
        error => (error.to_string(), error.help()),
    };
    let mut response = Response::failure(id, &GremlinError::new(error.code(), message));
    let mut add = |name: &str, value: Value| drop(response.attributes.insert(Value::text(name), value));
    if !help.is_empty() {
        response.message = format!("{} ({help})", response.message);
        add(HELP, Value::text(help));
    }
    if let Ok(millis @ 1..) = i64::try_from(error.retry_after_ms()) {
        add(RETRY_AFTER_MS, Value::Long(millis));
    }
    response
}

/// The answer to a request of a peer that is not authenticated.
pub(super) fn unauthenticated(message: &str) -> QueryError {
    let help = "send the token as the password of SASL PLAIN".to_owned();
    QueryError::Remote { code: ErrorCode::Unauthenticated, message: message.to_owned(), help }
}

/// There is no memory for a request.
pub(super) fn no_memory() -> QueryError {
    metrics::counter!("kith_server_requests_refused_total", "reason" => "memory").increment(1);
    QueryError::Overloaded {
        detail: "the requests under way use all memory that this process has for requests".to_owned(),
    }
}

/// A connection has too many requests under way.
pub(super) fn too_many() -> QueryError {
    let detail = format!(
        "{UNDER_WAY_MAX} requests of this connection are under way; wait for an answer, or use several connections"
    );
    QueryError::Overloaded { detail }
}

/// An error of Gremlin as one of a query.
pub(super) fn of_gremlin(error: GremlinError) -> QueryError {
    if error.code == ErrorCode::Overloaded {
        return no_memory();
    }
    QueryError::Remote { code: error.code, message: error.message, help: String::new() }
}
