//! The first bytes in each direction: who speaks frames, and which version.

use thiserror::Error;

/// The version that this release speaks.
pub const VERSION: u16 = 1;
/// How many bytes a preface has.
pub const PREFACE_BYTES: usize = 8;
/// Its first byte tells it from HTTP/2 (`PRI * HTTP/2.0`) and from HTTP/1 requests.
const MAGIC: [u8; 6] = *b"KITHFR";

/// The first bytes of each direction, the client's first. Both sides then speak the lower of the two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preface {
    /// The highest version that the sender speaks; it speaks all below it from 1.
    pub version: u16,
}

/// The other side does not speak frames.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefaceError {
    /// Another protocol.
    #[error("the first bytes are not those of the framed protocol")]
    Foreign,
    /// No version at all.
    #[error("version 0 of the framed protocol does not exist")]
    Version,
}

impl Preface {
    /// Of this release.
    pub const OWN: Preface = Preface { version: VERSION };

    /// Whether `bytes`, as many as have come, may begin a preface.
    pub fn may_begin(bytes: &[u8]) -> bool {
        bytes.iter().zip(MAGIC).all(|(byte, expected)| *byte == expected)
    }

    /// As bytes.
    pub fn encode(self) -> [u8; PREFACE_BYTES] {
        let mut bytes = [0; PREFACE_BYTES];
        bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
        bytes[MAGIC.len()..].copy_from_slice(&self.version.to_le_bytes());
        bytes
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are those of another protocol.
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
