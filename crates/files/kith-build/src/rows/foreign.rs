//! Recognises files that are often given by mistake, so that they are refused by name.

/// The first bytes of formats that nothing here reads, and what such a file is.
const MAGICS: [(&[u8], &str); 18] = [
    (b"PARE", "an encrypted Parquet file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ\x00", "compressed by xz"),
    (b"\x04\x22\x4d\x18", "compressed by lz4"),
    (b"\x02\x21\x4c\x18", "compressed by lz4"),
    (b"\xff\x06\x00\x00sNaPpY", "compressed by snappy"),
    (b"\x89LZO\x00", "compressed by lzop"),
    (b"LZIP", "compressed by lzip"),
    (b"\x1f\x9d", "compressed by compress (.Z)"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\xff\xfe", "UTF-16 text (write it as UTF-8)"),
    (b"\xfe\xff", "UTF-16 text (write it as UTF-8)"),
];

/// Where a tar archive has its mark.
const TAR: std::ops::Range<usize> = 257..262;

/// The format of a file with this beginning, if it is certainly no text that is read line by line. Parquet and Arrow are for the
/// caller.
pub(crate) fn named(head: &[u8]) -> Option<&'static str> {
    if let Some((_, found)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(found);
    }
    if head.get(TAR) == Some(b"ustar") {
        return Some("a tar archive (unpack it)");
    }
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // A text may hold single ones.
    if !first.is_empty() && first.len() <= 4 * first.iter().filter(|byte| **byte == 0).count() {
        return Some(
            "binary or UTF-16, as the NUL bytes of its first line show (raw vectors of f32 need --format f32le and --dims)",
        );
    }
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    (first == Some(&b'[')).then_some("a JSON list (write one object a line)")
}

/// Why a file without any bytes cannot be whole: its name says that it has at least a header.
pub(crate) fn empty(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    let kind = match extension {
        "gz" => "a gzip file has at least 20 bytes",
        "zst" => "a zstd file has at least 9 bytes",
        "parquet" => "a Parquet file has a header and a footer",
        "arrow" | "arrows" | "feather" | "ipc" => "an Arrow file has a schema",
        _ => return None,
    };
    Some(kind)
}
