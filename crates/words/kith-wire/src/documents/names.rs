//! Checks of names that become parts of paths. Names are checked whenever a document is read, whichever process wrote
//! it.

use kith_types::{InvalidName, check_component_name, check_folder_name, check_store_name};
use serde::{Deserialize, Deserializer, de::Error};

pub(super) fn store<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked(deserializer, check_store_name)
}

pub(super) fn component<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked(deserializer, check_component_name)
}

pub(super) fn folder<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    name.as_deref().map_or(Ok(()), check_folder_name).map_err(D::Error::custom)?;
    Ok(name)
}

fn checked<'de, D: Deserializer<'de>>(
    deserializer: D,
    check: fn(&str) -> Result<(), InvalidName>,
) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    check(&name).map_err(D::Error::custom)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use crate::documents::{ComponentDocument, DefinitionDocument, Document, HoldsDocument, ServedDocument};

    #[test]
    fn names_that_lead_elsewhere_are_refused_when_a_record_is_read() {
        let component = |name: &str| ComponentDocument {
            name: name.to_owned(),
            role: "values".to_owned(),
            version: 1,
            manifest_hash: String::new(),
            columns: Vec::new(),
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
            schema: None,
            folder: None,
            url: None,
        };
        let served = |store: &str, name: &str| ServedDocument {
            format: super::super::DOCUMENT_FORMAT,
            name: store.to_owned(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version: 1,
            components: vec![component(name)],
            excluded: Vec::new(),
        };
        ServedDocument::decode(&served("scores", "values").encode()).unwrap();
        for (store, name) in [
            ("scores", "../secrets/values"),
            ("scores", "/somewhere/deep"),
            ("scores", ""),
            ("../secrets", "values"),
            (".", "values"),
        ] {
            let read = ServedDocument::decode(&served(store, name).encode());
            assert!(read.is_err(), "{store:?}, {name:?}");
        }
    }
}
