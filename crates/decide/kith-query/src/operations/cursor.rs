//! The cursor of a list of edges: an opaque text that a caller hands back.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use kith_operators::EdgePosition;
use kith_types::StoreVersion;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The place in an ordered list of edges at which the next page begins. It belongs to one version of an edge type and to
/// one query. As text it is URL-safe base64 of 29 bytes: the format (1), then version, checksum of the query, value and id,
/// little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeCursor {
    /// The version of the edge type.
    pub version: StoreVersion,
    /// A checksum over everything that determines the edges and their order.
    pub question: u32,
    /// The last edge of the previous page.
    pub position: EdgePosition,
}

const FORMAT: u8 = 1;

/// The text is not a cursor.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the cursor is not one that an answer had as \"after\"")]
pub struct NotACursor;

impl fmt::Display for EdgeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.version.0.to_le_bytes());
        bytes.extend(self.question.to_le_bytes());
        bytes.extend(self.position.value.to_le_bytes());
        bytes.extend(self.position.id.to_le_bytes());
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for EdgeCursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| NotACursor)?;
        let bytes: &[u8; 29] = bytes.as_slice().try_into().map_err(|_| NotACursor)?;
        let (&[FORMAT], rest) = bytes.split_first_chunk().ok_or(NotACursor)? else { return Err(NotACursor) };
        let (version, rest) = rest.split_first_chunk().ok_or(NotACursor)?;
        let (question, rest) = rest.split_first_chunk().ok_or(NotACursor)?;
        let (value, id) = rest.split_first_chunk().ok_or(NotACursor)?;
        let id = id.try_into().map_err(|_| NotACursor)?;
        Ok(Self {
            version: StoreVersion(u64::from_le_bytes(*version)),
            question: u32::from_le_bytes(*question),
            position: EdgePosition { value: u64::from_le_bytes(*value), id: u64::from_le_bytes(id) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cursors_come_back_from_their_text(version: u64, question: u32, value: u64, id: u64) {
            let position = EdgePosition { value, id };
            let cursor = EdgeCursor { version: StoreVersion(version), question, position };
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }

        #[test]
        fn other_texts_are_refused(text in ".{0,50}") {
            prop_assume!(text.len() != 39);
            prop_assert_eq!(text.parse::<EdgeCursor>(), Err(NotACursor));
        }
    }
}
