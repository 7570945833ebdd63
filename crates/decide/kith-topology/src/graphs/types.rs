//! The types of a live graph as a text of their own, and the reference by which the topology names them.

use kith_live::{GraphTypes, TypesDocument};
use kith_wire::documents::TypesReference;

/// Encodes types as a text, and names it.
pub fn types_text(types: &GraphTypes) -> (TypesReference, String) {
    let document = TypesDocument::from(types);
    let text = serde_json::to_string(&document).expect("types hold only strings, numbers and lists");
    let reference = TypesReference {
        identity: document.identity,
        revision: document.revision,
        bytes: text.len() as u64,
        digest: TypesReference::digest_of(&text),
    };
    (reference, text)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity_of;

    #[test]
    fn types_are_read_only_from_the_text_that_their_reference_names() {
        let types = |graph| GraphTypes::new(graph, &"[object.person]\n".parse().unwrap()).unwrap();
        let (reference, text) = types_text(&types(7));
        reference.check(&text).unwrap();
        assert_eq!(types_of_text(&reference, &text).unwrap(), types(7));
        assert_eq!(identity_of(&reference), Ok(7));

        let damaged = text.replace("person", "parson");
        assert!(reference.check(&damaged).unwrap_err().contains("damaged"));
        assert!(reference.check(&text[1..]).unwrap_err().contains("bytes"));
        let (_, other) = types_text(&types(8));
        assert!(types_of_text(&reference, &other).unwrap_err().contains("not of graph"));
        let later = TypesReference { revision: 2, ..reference };
        assert!(types_of_text(&later, &text).unwrap_err().contains("at revision 2"));
    }
}
