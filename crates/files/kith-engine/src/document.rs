//! JSON documents in a version's folder. Each carries its own seal.

use serde::Serialize;

/// The bytes of a document: indented JSON and a final newline.
pub fn json_text(document: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(document).expect("strings and numbers always serialize");
    bytes.push(b'\n');
    bytes
}

/// The seal of a document: BLAKE3 of its bytes while its field `seal` is empty.
pub fn seal_of(unsealed: &impl Serialize) -> String {
    blake3::hash(&json_text(unsealed)).to_hex().to_string()
}
