//! Who asks: the mechanism PLAIN of SASL (RFC 4616).

use super::arguments::{Arguments, wanted};
use crate::{
    error::{GremlinError, Result},
    value::Value,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use kith_types::ErrorCode;
use std::fmt;

/// A user and a password, which is a token of Kith.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name of the user. Kith does not look at it.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The credentials in the arguments of an authentication: base64 in a string, or the bytes themselves.
pub(super) fn credentials(arguments: &mut Arguments) -> Result<Credentials> {
    if let Some(mechanism) = arguments.text("saslMechanism")?
        && !mechanism.eq_ignore_ascii_case("PLAIN")
    {
        let message = format!("the SASL mechanism {mechanism:?} is not supported; use PLAIN");
        return Err(GremlinError::new(ErrorCode::UnsupportedOperation, message));
    }
    let message = match arguments.required("sasl")? {
        Value::String(text) => STANDARD.decode(&*text).map_err(|_| malformed())?,
        Value::Binary(bytes) => bytes.to_vec(),
        other => return Err(wanted("sasl", "a String", &other)),
    };
    let text = String::from_utf8(message).map_err(|_| malformed())?;
    let mut parts = text.split('\0');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(user), Some(password), None) => {
            Ok(Credentials { user: user.to_owned(), password: password.to_owned() })
        }
        _ => Err(malformed()),
    }
}

fn malformed() -> GremlinError {
    let message = "the argument \"sasl\" must be the base64 of a message of SASL PLAIN: a user and a password, \
        each after a byte 0";
    GremlinError::new(ErrorCode::Unauthenticated, message)
}
