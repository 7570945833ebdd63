//! How files are compressed, and what their bytes unpack to.

use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::io::{self, BufRead, Read};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    Plain,
    /// gzip, one member or several.
    Gzip,
    /// Zstandard, one frame or several.
    Zstd,
}

impl Codec {
    /// As the first bytes of a file say.
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Codec::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Codec::Zstd,
            _ => Codec::Plain,
        }
    }

    /// What `packed` unpacks to.
    pub(crate) fn unpack(self, packed: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Codec::Plain => Box::new(packed),
            Codec::Gzip => Box::new(MultiGzDecoder::new(packed)),
            Codec::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        })
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Codec::Plain => "plain",
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
        })
    }
}
