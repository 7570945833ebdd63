//! Checks of the names and definitions of stores.

use kith_cluster::metadata::records::bounds;
use kith_schema::Schema;
use kith_types::{ErrorCode, InvalidName, check_store_name};
use kith_wire::{
    documents::{DefinitionDocument, HoldsDocument},
    v1,
};
use std::num::NonZeroU64;
use tonic::Status;

/// The maximum number of versions that a store may keep. Each is a copy of the store on every node.
const RETAIN_MAX: u32 = 100;

/// Refuses names that cannot be used as folders.
pub(super) fn check_name(name: &str) -> Result<(), Status> {
    check_store_name(name).map_err(|error| invalid_name(&error))
}

fn invalid_name(error: &InvalidName) -> Status {
    let help = format!("a name is {}", error.rule);
    let message = format!("a {} cannot be called {:?}", error.what, error.name);
    kith_wire::status(ErrorCode::InvalidName, message, help)
}

/// Decodes the definition in a request.
pub(super) fn decoded(definition: &[u8]) -> Result<DefinitionDocument, Status> {
    bounds::check_definition_bytes(definition)?;
    serde_json::from_slice(definition).map_err(|error| unreadable_definition(&error))
}

fn unreadable_definition(error: &serde_json::Error) -> Status {
    let message = format!("the definition of the store cannot be read: {error}");
    let help = "no store was created; a definition is a JSON object with at least `holds`, `retain` and `required_reads`";
    kith_wire::status(ErrorCode::BadRequest, message, help)
}

/// Refuses a definition that is impossible in a cluster with `groups` replica groups.
pub(super) fn check_definition(definition: &DefinitionDocument, groups: usize) -> Result<(), Status> {
    let bad = |message: String, help: &str| Err(kith_wire::status(ErrorCode::BadDefinition, message, help));
    if let HoldsDocument::Values { key, value, .. } = &definition.holds {
        for (what, got, known) in [
            ("key", key, &["id", "string", "bytes"][..]),
            ("value", value, &["text", "bytes", "json", "record"][..]),
        ] {
            if !known.contains(&got.as_str()) {
                return bad(format!("a {what} cannot be {got:?}"), &format!("one of {}", known.join(", ")));
            }
        }
    }
    if let Some(schema) = &definition.schema {
        let is_of_records =
            matches!(&definition.holds, HoldsDocument::Values { value, .. } if value == "record");
        if !is_of_records {
            return bad(
                "a schema requires `--value record`".to_owned(),
                "create a store of records, or leave the schema out",
            );
        }
        if let Err(error) = schema.parse::<Schema>() {
            return bad(
                format!("the schema cannot be read: {error}"),
                "see docs/formats/schema.md for the language",
            );
        }
    }
    if definition.properties.is_some() {
        return bad(
            "the properties of members cannot be part of a definition that is created".to_owned(),
            "load the graph, then use `kith graph properties`",
        );
    }
    bounds::check_texts(definition)?;
    let copies = definition.replication.unwrap_or(groups as u32);
    if copies == 0 || (groups as u32) < copies {
        return bad(
            format!("{copies} copies were asked for, but the cluster has {groups} groups"),
            "ask for at most that many",
        );
    }
    if definition.required_reads == 0 || copies < definition.required_reads {
        let message = format!(
            "{} equal answers were asked for, but there are {copies} copies",
            definition.required_reads
        );
        return bad(message, "ask for at least 1 and at most the number of copies");
    }
    check_retain(definition.retain)?;
    if definition.drop_percent_max.is_some_and(|percent| 100 < percent) {
        return bad("the largest allowed drop is above 100 %".to_owned(), "give 0 to 100");
    }
    Ok(())
}

/// Refuses to keep more versions than [`RETAIN_MAX`].
pub(super) fn check_retain(retain: u32) -> Result<(), Status> {
    if retain <= RETAIN_MAX {
        return Ok(());
    }
    let (message, help) = (format!("{retain} versions are too many to keep"), "keep at most 100");
    Err(kith_wire::status(ErrorCode::BadDefinition, message, help))
}

/// Changes the fields that a request names, and leaves the others.
pub(super) fn alter(definition: &mut DefinitionDocument, asked: &v1::AlterStore) {
    if let Some(keys) = asked.read_quota_keys {
        definition.read_quota_keys = NonZeroU64::new(keys);
    }
    if let Some(bytes) = asked.read_quota_bytes {
        definition.read_quota_bytes = NonZeroU64::new(bytes);
    }
    if let Some(retain) = asked.retain {
        definition.retain = retain;
    }
    if let Some(bytes) = asked.quota_bytes {
        definition.quota_bytes = (0 < bytes).then_some(bytes);
    }
    if let Some(records) = asked.records_min {
        definition.records_min = records;
    }
    if let Some(percent) = asked.drop_percent_max {
        definition.drop_percent_max = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
    }
    if let Some(owner) = &asked.owner {
        definition.owner = (!owner.is_empty()).then(|| owner.clone());
    }
    if let Some(properties) = &asked.properties {
        definition.properties = (!properties.is_empty()).then(|| properties.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_folders_are_refused() {
        for good in ["v", "kith-village", "0", "a.b_c-d", &"x".repeat(63)] {
            check_name(good).unwrap();
        }
        for bad in ["", "V", ".hidden", "..", "../x", "a/b", "é", &"x".repeat(64)] {
            assert_eq!(kith_wire::code_of(&check_name(bad).unwrap_err()), ErrorCode::InvalidName, "{bad}");
        }
    }

    #[test]
    fn definitions_that_cannot_be_kept_are_refused() {
        let values = HoldsDocument::Values { key: "id".into(), value: "text".into(), key_field: None };
        let good = DefinitionDocument::new(values);
        check_definition(&good, 2).unwrap();
        const SCHEMA: &str = r#"{"fields":[{"name":"score","type":"f64"}]}"#;
        let holds = |key: &str, value: &str| {
            let holds = HoldsDocument::Values { key: key.into(), value: value.into(), key_field: None };
            DefinitionDocument { holds, ..good.clone() }
        };
        let records = DefinitionDocument { schema: Some(SCHEMA.to_owned()), ..holds("id", "record") };
        check_definition(&records, 2).unwrap();
        for bad in [
            holds("uuid", "text"),
            holds("id", "xml"),
            DefinitionDocument { replication: Some(3), ..good.clone() },
            DefinitionDocument { replication: Some(0), ..good.clone() },
            DefinitionDocument { required_reads: 0, ..good.clone() },
            DefinitionDocument { replication: Some(1), required_reads: 2, ..good.clone() },
            DefinitionDocument { retain: 101, ..good.clone() },
            DefinitionDocument { drop_percent_max: Some(101), ..good.clone() },
            DefinitionDocument { schema: Some(SCHEMA.to_owned()), ..good.clone() },
            DefinitionDocument { schema: Some("{".to_owned()), ..holds("id", "record") },
            DefinitionDocument { properties: Some("people".to_owned()), ..good.clone() },
        ] {
            assert!(check_definition(&bad, 2).is_err(), "{bad:?}");
        }
    }
}
