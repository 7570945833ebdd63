//! The types of a live graph as a text of their own, and the reference by which the topology names them.

use kith_live::{GraphTypes, TypesDocument};
use kith_wire::documents::TypesReference;
use sha2::{Digest, Sha256};

/// Encodes types as a text, and names it.
pub fn types_text(types: &GraphTypes) -> (TypesReference, String) {
    let document = TypesDocument::from(types);
    let text = serde_json::to_string(&document).expect("types hold only strings, numbers and lists");
    let reference = TypesReference {
        identity: document.identity,
        revision: document.revision,
        bytes: text.len() as u64,
        digest: digest(&text),
    };
    (reference, text)
}

/// Checks that a text is the one that a reference names.
///
/// # Errors
/// A description of the fault in the text.
pub fn check_types_text(reference: &TypesReference, text: &str) -> Result<(), String> {
    if reference.bytes != text.len() as u64 {
        return Err(format!("they have {} bytes and should have {}", text.len(), reference.bytes));
    }
    match digest(text) == reference.digest {
        true => Ok(()),
        false => {
            Err("they are damaged: their SHA-256 is not the one that the graph's document names".to_owned())
        }
    }
}

/// Decodes the types in a text that has been checked.
///
/// # Errors
/// The reason why the text cannot be read, or is not what the reference names.
pub fn types_of_text(reference: &TypesReference, text: &str) -> Result<GraphTypes, String> {
    let document: TypesDocument = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if (&document.identity, document.revision) != (&reference.identity, reference.revision) {
        return Err(format!(
            "they are those of graph {} at revision {}, not of graph {} at revision {}",
            document.identity, document.revision, reference.identity, reference.revision
        ));
    }
    GraphTypes::try_from(document).map_err(|error| error.to_string())
}

/// Reads the identity of a graph in the reference to its types.
///
/// # Errors
/// If it is not a hexadecimal number.
pub fn identity_of(reference: &TypesReference) -> Result<u64, String> {
    u64::from_str_radix(&reference.identity, 16)
        .map_err(|_| format!("the identity {:?} is not a hexadecimal number", reference.identity))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_only_from_the_text_that_their_reference_names() {
        let types = |graph| GraphTypes::new(graph, &"[object.person]\n".parse().unwrap()).unwrap();
        let (reference, text) = types_text(&types(7));
        check_types_text(&reference, &text).unwrap();
        assert_eq!(types_of_text(&reference, &text).unwrap(), types(7));
        assert_eq!(identity_of(&reference), Ok(7));

        let damaged = text.replace("person", "parson");
        assert!(check_types_text(&reference, &damaged).unwrap_err().contains("damaged"));
        assert!(check_types_text(&reference, &text[1..]).unwrap_err().contains("bytes"));
        let (_, other) = types_text(&types(8));
        assert!(types_of_text(&reference, &other).unwrap_err().contains("not of graph"));
        let later = TypesReference { revision: 2, ..reference };
        assert!(types_of_text(&later, &text).unwrap_err().contains("at revision 2"));
    }
}
