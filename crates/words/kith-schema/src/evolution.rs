//! Decides whether one schema may follow another in a store, and what changes for its readers.
//!
//! Readers of the new schema can read records of the old one, which a rollback serves again. The reverse need not be true:
//! a reader of the old schema cannot read a field that was widened.

use crate::{Field, FieldType, Schema};
use std::fmt;
use thiserror::Error;

/// One allowed difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Change {
    /// A new field, which may be null or has a default.
    Added { field: String, field_type: FieldType },
    /// A field was removed. Queries that still name it get an error.
    Dropped { field: String },
    /// `i32` became `i64`, or `f32` became `f64`.
    Widened {
        field: String,
        /// The old type.
        old: FieldType,
        /// The new type.
        new: FieldType,
    },
    /// A field may now be null.
    Nullable { field: String },
    /// A default was changed, added or removed.
    Default { field: String },
    /// The same fields in another order. Only JSON output shows the difference.
    Reordered,
}

/// All differences, in the order of the new schema, followed by removed fields. Empty if nothing changed.
pub type Changes = Vec<Change>;

/// The reason why a schema may not follow another, or why records of one cannot be read with the other.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("field {field:?} {why}")]
pub struct Incompatible {
    /// The field.
    pub field: String,
    /// A description of the fault.
    pub why: Mismatch,
}

/// The reason why a built version may not follow the served one in a store.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum VersionMisfit {
    /// Their schemas are not compatible.
    #[error("records of the current version could not be read by the new schema: {0}")]
    Incompatible(#[from] Incompatible),
    /// Fields of the served records are not in those of the built version.
    #[error("the built version lacks fields of the current one: {}", .fields.join(", "))]
    Lacks {
        /// The names of these fields, in quotes.
        fields: Vec<String>,
        /// All differences.
        changes: Changes,
    },
}

impl VersionMisfit {
    /// The advice to the user.
    pub fn help(&self) -> &'static str {
        match self {
            VersionMisfit::Incompatible(_) => {
                "keep the field as it was, or use `--force` if no client reads it"
            }
            VersionMisfit::Lacks { .. } => {
                "build it with these fields, or use `--fill-missing` to serve records without them"
            }
        }
    }
}

/// A description of the fault in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The old type does not widen to the new one.
    Type {
        /// The old type.
        old: FieldType,
        /// The new type.
        new: FieldType,
    },
    /// A new field is neither nullable nor has a default.
    NotOptional,
    /// A field is no longer nullable and has no default.
    NoLongerNullable,
    /// The records lack the field, and it has no default.
    NotWritten,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Type { old, new } => {
                write!(f, "was {old} and is now {new} (only i32 to i64 and f32 to f64 may change)")
            }
            Mismatch::NotOptional => f.write_str("is new: make it nullable or give it a default"),
            Mismatch::NoLongerNullable => {
                f.write_str("could be null before: keep it nullable or give it a default")
            }
            Mismatch::NotWritten => f.write_str("is not in the records, cannot be null and has no default"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Added { field, field_type } => write!(f, "field {field:?} ({field_type}) is new"),
            Change::Dropped { field } => {
                write!(f, "field {field:?} is gone: queries that name it will be refused")
            }
            Change::Widened { field, old, new } => write!(f, "field {field:?} was {old} and is now {new}"),
            Change::Nullable { field } => write!(f, "field {field:?} may now be null"),
            Change::Default { field } => write!(f, "field {field:?} has another default"),
            Change::Reordered => f.write_str("the fields are in another order"),
        }
    }
}

/// Checks whether `new` may follow `old`, and returns the changes.
///
/// The allowed changes are new fields that are nullable or have a default, removed fields, `i32` to `i64` and `f32` to
/// `f64`, fields that become nullable, other defaults, and another order.
///
/// # Errors
/// [`Incompatible`] with the first field, in the order of the new schema, that breaks the rules.
pub fn compatible(old: &Schema, new: &Schema) -> Result<Changes, Incompatible> {
    let mut changes = Changes::new();
    let mut kept = Vec::new();
    for field in new.fields() {
        match old.index_of(field.name()) {
            Some(index) => {
                kept.push(index);
                compare(&old.fields()[index], field, &mut changes)?;
            }
            None if field.is_nullable() || field.has_default() => {
                changes
                    .push(Change::Added { field: field.name().to_owned(), field_type: field.field_type() });
            }
            None => return Err(Incompatible { field: field.name().to_owned(), why: Mismatch::NotOptional }),
        }
    }
    if !kept.is_sorted() {
        changes.push(Change::Reordered);
    }
    let dropped = old.fields().iter().filter(|field| new.index_of(field.name()).is_none());
    changes.extend(dropped.map(|field| Change::Dropped { field: field.name().to_owned() }));
    Ok(changes)
}

/// Checks whether a version that is built already may follow the served one, and returns the changes. With `fill_missing` it may
/// lack fields of the served one.
///
/// # Errors
/// [`VersionMisfit`] with the reason.
pub fn may_follow(served: &Schema, built: &Schema, fill_missing: bool) -> Result<Changes, VersionMisfit> {
    let changes = compatible(served, built)?;
    let dropped = changes.iter().filter_map(|change| match change {
        Change::Dropped { field } => Some(format!("{field:?}")),
        _ => None,
    });
    let fields: Vec<String> = dropped.collect();
    match fields.is_empty() || fill_missing {
        true => Ok(changes),
        false => Err(VersionMisfit::Lacks { fields, changes }),
    }
}

fn compare(old: &Field, new: &Field, changes: &mut Changes) -> Result<(), Incompatible> {
    let field = || new.name().to_owned();
    let refuse = |why| Err(Incompatible { field: field(), why });
    let (old_type, new_type) = (old.field_type(), new.field_type());
    if !old_type.widens_to(new_type) {
        return refuse(Mismatch::Type { old: old_type, new: new_type });
    }
    if old.is_nullable() && !new.is_nullable() && !new.has_default() {
        return refuse(Mismatch::NoLongerNullable);
    }
    if old_type != new_type {
        changes.push(Change::Widened { field: field(), old: old_type, new: new_type });
    }
    if !old.is_nullable() && new.is_nullable() {
        changes.push(Change::Nullable { field: field() });
    }
    if old.default != new.default {
        changes.push(Change::Default { field: field() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: &[(&str, &str)]) -> Schema {
        let fields = fields.iter().map(|(name, kind)| format!(r#"{{"name":"{name}","type":"{kind}"}}"#));
        format!(r#"{{"fields":[{}]}}"#, fields.collect::<Vec<_>>().join(",")).parse().expect("a schema")
    }

    #[test]
    fn a_built_version_lacks_no_field_of_the_served_one_unless_it_may() {
        let served = schema(&[("name", "text"), ("age", "i32"), ("city", "text")]);
        let wider = schema(&[("name", "text"), ("age", "i64"), ("city", "text")]);
        assert_eq!(may_follow(&served, &wider, false).map(|changes| changes.len()), Ok(1));
        let few = schema(&[("name", "text")]);
        let refused = may_follow(&served, &few, false).expect_err("two fields are missing");
        assert_eq!(
            refused.to_string(),
            r#"the built version lacks fields of the current one: "age", "city""#
        );
        assert_eq!(may_follow(&served, &few, true).map(|changes| changes.len()), Ok(2));
        let other = schema(&[("name", "i64")]);
        for fill_missing in [false, true] {
            assert!(matches!(may_follow(&served, &other, fill_missing), Err(VersionMisfit::Incompatible(_))));
        }
    }
}
