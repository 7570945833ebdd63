//! Detects how files are compressed, and decompresses them.

use flate2::bufread::MultiGzDecoder;
use std::fmt;
use std::io::{self, BufRead, Read};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// The file is not compressed.
    Plain,
    /// gzip, with one or more members.
    Gzip,
    /// Zstandard, with one or more frames.
    Zstd,
}

impl Codec {
    /// Detects the compression from the first bytes of a file.
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Codec::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Codec::Zstd,
            _ => Codec::Plain,
        }
    }

    /// Returns the decompressed bytes of `packed`.
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
