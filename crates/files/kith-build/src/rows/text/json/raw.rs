//! JSON values as they are written.

use crate::rows::fault::RowFault;
use crate::rows::value::json_fault;
use serde::Deserialize;
use std::borrow::Cow;

/// The text of a JSON string.
pub(super) fn string(raw: &str) -> Result<Cow<'_, str>, RowFault> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw).map(|text| text.0).map_err(|error| json_fault(&error))
}

/// The kind of a JSON value, for messages.
pub(super) fn kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'"') => "text",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "false or true",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// The name of a member.
#[derive(Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);
