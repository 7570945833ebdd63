//! Types as a person declares them in TOML (`docs/formats/graph-types.md`), and their canonical text.

use super::{AssociationType, GraphTypes, Inverse};
use kith_schema::Schema;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// The types that a text declares, in the order of the text. [`str::parse`] reads the text, and [`fmt::Display`] writes its
/// canonical form, which parses to an equal value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeclaredTypes {
    /// Whether writes may add types.
    pub open: bool,
    /// The object types.
    pub objects: Vec<DeclaredObject>,
    /// The association types, without those that are the inverse of another type.
    pub associations: Vec<DeclaredAssociation>,
}

/// A declared object type.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredObject {
    /// The name of the type.
    pub name: String,
    /// The fields of the type; `None` if it has none.
    pub fields: Option<Schema>,
    /// The fields that have an index, and whether their values are unique.
    pub indexes: BTreeMap<String, bool>,
    /// Whether the type is open.
    pub open: bool,
    /// Whether the type has `ids = "text"`.
    pub text_ids: bool,
}

/// A declared association type, together with its inverse.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredAssociation {
    /// The name of the type.
    pub name: String,
    /// The fields of the type and of its inverse; `None` if they have none.
    pub fields: Option<Schema>,
    /// The maximum number of associations that one read returns.
    pub cap: u32,
    /// Whether graph queries follow associations of this type.
    pub adjacency: bool,
    /// The inverse of the type.
    pub inverse: DeclaredInverse,
    /// Whether the type and its inverse are open.
    pub open: bool,
}

/// The inverse of a declared association type.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "DeclaredAssociation has fields of the same names")]
pub enum DeclaredInverse {
    /// The type has no inverse.
    None,
    /// The type is its own inverse.
    Symmetric,
    /// The inverse is another type, which has the same fields.
    Named { name: String, cap: u32, adjacency: bool },
}

/// A table of fields is written on one line if that line, with its line break, has at most this many bytes.
const LINE_CHARS_MAX: usize = 100;

impl DeclaredTypes {
    /// Returns the types as a text would declare them now, in the order of their numbers.
    pub(super) fn of(types: &GraphTypes) -> Self {
        let objects = types.objects.values().map(|kind| DeclaredObject {
            name: kind.name.clone(),
            fields: kind.schemas.last().cloned(),
            indexes: kind.indexes.iter().map(|index| (index.field.clone(), index.unique)).collect(),
            open: kind.open,
            text_ids: kind.text_ids,
        });
        let forward = types.associations.values().filter_map(|kind| DeclaredAssociation::of(types, kind));
        Self { open: types.open, objects: objects.collect(), associations: forward.collect() }
    }
}

impl fmt::Display for DeclaredTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.open.then(|| "open = true\n".to_owned());
        let objects = self.objects.iter().map(DeclaredObject::to_toml);
        let associations = self.associations.iter().map(DeclaredAssociation::to_toml);
        let parts = open.into_iter().chain(objects).chain(associations);
        f.write_str(&parts.collect::<Vec<_>>().join("\n"))
    }
}

impl DeclaredObject {
    fn to_toml(&self) -> String {
        let header = format!("object.{}", key_to_toml(&self.name));
        let fields = fields_to_toml(&header, self.fields.as_ref(), &self.indexes);
        let ids = if self.text_ids { "ids = \"text\"\n" } else { "" };
        format!("[{header}]\n{}{ids}{fields}", open_to_toml(self.open))
    }
}

impl DeclaredAssociation {
    /// Returns the declaration of a type; `None` if the type is the inverse of another.
    fn of(types: &GraphTypes, kind: &AssociationType) -> Option<Self> {
        let inverse = match kind.inverse {
            Inverse::None => DeclaredInverse::None,
            Inverse::Symmetric => DeclaredInverse::Symmetric,
            Inverse::Named { forward: false, .. } => return None,
            Inverse::Named { kind, .. } => {
                let inverse = types.associations.get(&kind)?;
                DeclaredInverse::Named {
                    name: inverse.name.clone(),
                    cap: inverse.cap,
                    adjacency: inverse.adjacency,
                }
            }
        };
        Some(Self {
            name: kind.name.clone(),
            fields: kind.schemas.last().cloned(),
            cap: kind.cap,
            adjacency: kind.adjacency,
            inverse,
            open: kind.open,
        })
    }

    fn to_toml(&self) -> String {
        let header = format!("association.{}", key_to_toml(&self.name));
        let mut text = format!("[{header}]\n{}", open_to_toml(self.open));
        match &self.inverse {
            DeclaredInverse::None => {}
            DeclaredInverse::Symmetric => text.push_str("symmetric = true\n"),
            DeclaredInverse::Named { name, .. } if self.open && *name == inverse_label(&self.name) => {}
            DeclaredInverse::Named { name, .. } => {
                text.push_str(&format!("inverse = {}\n", text_to_toml(name)));
            }
        }
        text.push_str(&limits_to_toml(self.cap, self.adjacency, AssociationType::CAP_DEFAULT, true));
        text.push_str(&fields_to_toml(&header, self.fields.as_ref(), &BTreeMap::new()));
        if let DeclaredInverse::Named { name, cap, adjacency } = &self.inverse {
            let limits = limits_to_toml(*cap, *adjacency, self.cap, self.adjacency);
            if !limits.is_empty() {
                text.push_str(&format!("\n[association.{}]\n{limits}", key_to_toml(name)));
            }
        }
        text
    }
}

fn open_to_toml(open: bool) -> &'static str {
    if open { "open = true\n" } else { "" }
}

/// Writes the cap and `adjacency` of a type, each only if it differs from the given default.
fn limits_to_toml(cap: u32, adjacency: bool, cap_default: u32, adjacency_default: bool) -> String {
    let mut text = String::new();
    if cap != cap_default {
        text.push_str(&format!("cap = {cap}\n"));
    }
    if adjacency != adjacency_default {
        text.push_str(&format!("adjacency = {adjacency}\n"));
    }
    text
}

/// Writes the fields on one line if they fit on it, and otherwise as a table of their own below the table of the type.
fn fields_to_toml(header: &str, schema: Option<&Schema>, indexes: &BTreeMap<String, bool>) -> String {
    let Some(schema) = schema else { return String::new() };
    let fields = field_lines(schema, indexes);
    let line = format!("fields = {{ {} }}\n", fields.join(", "));
    if line.len() <= LINE_CHARS_MAX {
        return line;
    }
    format!("[{header}.fields]\n{}\n", fields.join("\n"))
}

fn field_lines(schema: &Schema, indexes: &BTreeMap<String, bool>) -> Vec<String> {
    // Only the canonical text of a schema contains the defaults as JSON.
    let canonical: Value = serde_json::from_str(schema.canonical()).unwrap_or_default();
    let spelled = |index: usize| canonical["fields"][index].get("default");
    let fields = schema.fields().iter().enumerate();
    fields
        .map(|(index, field)| {
            let kind = format!("\"{}\"", field.field_type());
            let mut line = format!("{} = ", key_to_toml(field.name()));
            match (field.is_nullable(), spelled(index), indexes.get(field.name())) {
                (false, None, None) => line.push_str(&kind),
                (nullable, default, indexed) => {
                    line.push_str(&format!("{{ type = {kind}"));
                    line.push_str(if nullable { ", nullable = true" } else { "" });
                    if let Some(default) = default {
                        line.push_str(&format!(", default = {}", value_to_toml(default)));
                    }
                    line.push_str(match indexed {
                        None => "",
                        Some(false) => ", index = true",
                        Some(true) => ", unique = true",
                    });
                    line.push_str(" }");
                }
            }
            line
        })
        .collect()
}

fn key_to_toml(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(bare) { key.to_owned() } else { text_to_toml(key) }
}

fn value_to_toml(value: &Value) -> String {
    match value {
        Value::String(text) => text_to_toml(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(value_to_toml).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members =
                members.iter().map(|(key, it)| format!("{} = {}", key_to_toml(key), value_to_toml(it)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        // Numbers and booleans are written as in JSON. Null does not occur, because a default is a value.
        other => other.to_string(),
    }
}

/// Writes a text as a basic string of TOML.
fn text_to_toml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            // Writing to a string cannot fail.
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the name of the inverse of an open type that declares no other inverse.
pub(super) fn inverse_label(name: &str) -> String {
    format!("~{name}")
}
