//! Compression of values, each on its own, with a dictionary that all values of a version share.
//!
//! Every value becomes one zstd frame, even if that is longer: a flag per value would cost as much as it saves. The
//! record's checksum covers the frame.

use crate::errors::{Damage, Fault, OpenError};
use crate::files::FileId;
use crate::pack::VersionFolder;
use crate::sealed::{HEADER_BYTES, SealedFile};
use kith_schema::VALUE_BYTES_MAX;
use std::io;
use zstd::bulk;
use zstd::dict::DecoderDictionary;
use zstd::zstd_safe::DDict;

/// Compresses values to frames.
pub struct Compressor(bulk::Compressor<'static>);

impl Compressor {
    /// An empty dictionary means that there is none.
    pub fn new(level: i32, dictionary: &[u8]) -> io::Result<Self> {
        let mut compressor = bulk::Compressor::with_dictionary(level, dictionary)?;
        // The version determines the dictionary, and records have a checksum.
        compressor.include_dictid(false)?;
        compressor.include_checksum(false)?;
        compressor.include_contentsize(true)?;
        Ok(Self(compressor))
    }

    /// Compresses a value to a frame.
    pub fn compress(&mut self, value: &[u8]) -> io::Result<Vec<u8>> {
        self.0.compress(value)
    }
}

/// Decompresses frames. All threads share it.
pub struct Decompressor(DecoderDictionary<'static>);

impl Decompressor {
    /// Prepares the dictionary; `None` if zstd refuses it.
    pub fn new(dictionary: &[u8]) -> Option<Self> {
        // `copy` panics on a dictionary that begins with the magic of a trained one but is not valid.
        DDict::try_create(dictionary)?;
        Some(Self(DecoderDictionary::copy(dictionary)))
    }

    /// The decompression context of one thread, created once per batch.
    pub fn context(&self) -> io::Result<bulk::Decompressor<'_>> {
        bulk::Decompressor::with_prepared_dictionary(&self.0)
    }
}

/// Decompresses the value of a frame into `out`. Returns `false` if the bytes are not the frame of a value.
pub fn decompress(context: &mut bulk::Decompressor<'_>, frame: &[u8], out: &mut Vec<u8>) -> bool {
    // The frame states its size, so a small value never causes a large allocation.
    let Some(bytes) = frame_value_bytes(frame) else { return false };
    out.clear();
    out.reserve(bytes);
    context.decompress_to_buffer(frame, out).is_ok_and(|count| count == bytes)
}

/// The size of the value in a frame, as the frame states it; `None` if the bytes are not the frame of a value.
pub fn frame_value_bytes(frame: &[u8]) -> Option<usize> {
    let bytes = zstd::zstd_safe::get_frame_content_size(frame).ok()??;
    usize::try_from(bytes).ok().filter(|&bytes| bytes <= VALUE_BYTES_MAX)
}

/// The dictionary of an open version, checked against its checksums.
pub fn read_dictionary(folder: &VersionFolder) -> Result<Vec<u8>, OpenError> {
    let file = SealedFile::open(folder, FileId::dictionary())?;
    let bytes = file.body()[HEADER_BYTES..].to_vec();
    file.verify(0..file.body().len())?;
    if file.trailer().records != bytes.len() as u64 {
        let fault = Fault::Foreign { what: "dictionary" };
        return Err(Damage { file: FileId::dictionary().to_string(), fault }.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were_with_and_without_a_dictionary() {
        let text = b"a dictionary of sorts, words that come again and again in values of a store".repeat(4);
        for dictionary in [&[][..], &text] {
            let mut compressor = Compressor::new(3, dictionary).unwrap();
            let shared = Decompressor::new(dictionary).unwrap();
            let mut context = shared.context().unwrap();
            let mut out = Vec::new();
            for value in [&b""[..], b"x", b"words that come again and again", &vec![7; 100_000]] {
                let frame = compressor.compress(value).unwrap();
                assert!(decompress(&mut context, &frame, &mut out));
                assert_eq!(out, value);
                assert!(!decompress(&mut context, &frame[..frame.len() - 1], &mut out));
            }
        }
    }

    #[test]
    fn a_dictionary_that_is_cut_short_is_refused() {
        let magic = 0xec30_a437_u32.to_le_bytes();
        assert!(Decompressor::new(&[&magic[..], &[1, 0, 0, 0]].concat()).is_none());
        assert!(Decompressor::new(b"any other bytes are a dictionary without tables").is_some());
    }

    #[test]
    fn what_is_no_frame_or_too_large_is_refused() {
        let shared = Decompressor::new(&[]).unwrap();
        let mut context = shared.context().unwrap();
        let large = zstd::bulk::compress(&vec![0; VALUE_BYTES_MAX + 1], 1).unwrap();
        for bytes in [&b""[..], b"no frame at all", &large] {
            assert!(!decompress(&mut context, bytes, &mut Vec::new()));
        }
    }
}
