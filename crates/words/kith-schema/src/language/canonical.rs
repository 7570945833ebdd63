//! The canonical text of a schema, which is hashed.

use crate::field::Field;
use std::fmt::Write;

/// The canonical text: compact, with members in a fixed order, `nullable` only if true, and defaults as records print them.
/// `defaults` are the fields' defaults as JSON, for fields that have one.
pub(crate) fn canonical(fields: &[Field], defaults: &[Option<String>]) -> String {
    let mut out = String::from("{\"kith_schema\":1,\"fields\":[");
    for (index, (field, default)) in fields.iter().zip(defaults).enumerate() {
        let name = serde_json::Value::from(field.name());
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{{\"name\":{name},\"type\":\"{}\"", field.field_type());
        if field.is_nullable() {
            out.push_str(",\"nullable\":true");
        }
        if let Some(default) = default {
            let _ = write!(out, ",\"default\":{default}");
        }
        out.push('}');
    }
    out.push_str("]}");
    out
}
