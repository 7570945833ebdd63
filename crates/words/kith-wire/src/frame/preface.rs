//! The preface: the first bytes in each direction, which identify the protocol and its version.

use thiserror::Error;

/// The version that this release speaks.
pub const VERSION: u16 = 1;
/// The length of a preface in bytes.
pub const PREFACE_BYTES: usize = 8;
/// The first byte differs from those of HTTP/2 (`PRI * HTTP/2.0`) and of HTTP/1 requests.
const MAGIC: [u8; 6] = *b"KITHFR";

/// The first bytes in each direction; the client sends first. Both sides then use the lower of the two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preface {
    /// The highest version that the sender speaks. It also speaks all lower versions from 1 on.
    pub version: u16,
}

/// The reason why the peer does not speak the framed protocol.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefaceError {
    /// The first bytes belong to another protocol.
    #[error("the first bytes are not those of the framed protocol")]
    Foreign,
    /// The preface announces version 0.
    #[error("version 0 of the framed protocol does not exist")]
    Version,
}

impl Preface {
    /// The preface that this release sends.
    pub const OWN: Preface = Preface { version: VERSION };

    /// Whether `bytes`, which may be incomplete, can be the beginning of a preface.
    pub fn may_begin(bytes: &[u8]) -> bool {
        bytes.iter().zip(MAGIC).all(|(byte, expected)| *byte == expected)
    }

    /// Encodes the preface.
    pub fn encode(self) -> [u8; PREFACE_BYTES] {
        let mut bytes = [0; PREFACE_BYTES];
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        bytes[MAGIC.len()..].copy_from_slice(&self.version.to_le_bytes());
        bytes
    }

    /// Decodes a preface.
    ///
    /// # Errors
    /// [`PrefaceError`] if the bytes belong to another protocol or announce version 0.
    pub fn decode(bytes: [u8; PREFACE_BYTES]) -> Result<Self, PrefaceError> {
        if !Self::may_begin(&bytes) {
            return Err(PrefaceError::Foreign);
        }
        match u16::from_le_bytes([bytes[6], bytes[7]]) {
            0 => Err(PrefaceError::Version),
            version => Ok(Self { version }),
        }
    }
}
