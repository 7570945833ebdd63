//! Detects how files are compressed, and decompresses them.

use flate2::bufread::GzDecoder;
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
            // pzstd and seekable files begin with a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Codec::Zstd,
            _ => Codec::Plain,
        }
    }

    /// Returns the decompressed bytes of `packed`.
    pub(crate) fn unpack(self, packed: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Codec::Plain => Box::new(packed),
            Codec::Gzip => Box::new(Members::new(packed)),
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

/// Whether an error of the decoder means that the file is intact, but was compressed with a window (`zstd --long`) that
/// needs more memory than is granted.
pub(crate) fn is_large_window(error: &io::Error) -> bool {
    error.to_string().contains("requires too much memory")
}

/// The message about such a file.
pub(crate) const LARGE_WINDOW: &str = "its zstd window is above 128 MiB (it was compressed with --long); decompress it with `zstd -d --long=31`, or compress it without --long";

/// The members of a gzip file, one after the other. Zeros may follow the last one, as tapes and some programs write them.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Members<R> {
    fn new(packed: R) -> Self {
        Members(Some(GzDecoder::new(packed)))
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.0 {
            match member.read(out)? {
                0 => {}
                count => return Ok(count),
            }
            let Some(mut packed) = self.0.take().map(GzDecoder::into_inner) else { return Ok(0) };
            if skip_zeros(&mut packed)? {
                self.0 = Some(GzDecoder::new(packed));
            }
        }
        Ok(0)
    }
}

/// Skips zeros. Returns whether something else follows.
fn skip_zeros(packed: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = packed.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros < bytes.len() {
            packed.consume(zeros);
            return Ok(true);
        }
        if bytes.is_empty() {
            return Ok(false);
        }
        packed.consume(zeros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(packed: Vec<u8>) -> io::Result<String> {
        let mut text = String::new();
        let codec = Codec::of(&packed);
        codec.unpack(io::Cursor::new(packed))?.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn gzip_members_and_zeros_after_them_are_read() {
        let two = [gzip("a"), gzip("b")].concat();
        assert_eq!(unpacked(two.clone()).unwrap(), "ab");
        assert_eq!(unpacked([two.clone(), vec![0; 600]].concat()).unwrap(), "ab");
        assert!(unpacked([two.clone(), vec![7; 600]].concat()).is_err());
        assert!(unpacked(two[..two.len() - 3].to_vec()).is_err());
    }

    #[test]
    fn a_zstd_file_may_begin_with_a_skippable_frame() {
        let frame = zstd::encode_all(&b"1,2\n"[..], 1).unwrap();
        let packed = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 9, 9, 9, 9][..], &frame].concat();
        assert_eq!(unpacked(packed).unwrap(), "1,2\n");
    }
}
