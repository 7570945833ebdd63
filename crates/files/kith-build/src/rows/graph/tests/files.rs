//! Compressed files, damaged files and files of other formats.

use super::super::source::Source;
use super::*;
use crate::rows::Codec;

#[test]
fn lines_cross_blocks_in_every_compression() {
    let folder = Folder::new();
    let (text, expected) = many_lines();
    let (head, tail) = text.as_bytes().split_at(text.len() / 3);
    let members = [gzip(head), gzip(tail)].concat();
    let frames = [zstd::encode_all(head, 1).unwrap(), zstd::encode_all(tail, 1).unwrap()].concat();
    for (name, bytes) in [
        ("a.csv", text.as_bytes()),
        ("b.csv.gz", &members),
        ("c.csv.zst", &frames),
        ("gzip-without-the-name", &members),
        ("zstd-named-gzip.gz", &frames),
    ] {
        assert_eq!(edges(&folder.file(name, bytes)).unwrap(), expected, "{name}");
    }
    let quoted = text.replace(',', ",\"").replace('\n', "\"\r\n");
    assert_eq!(edges(&folder.file("quoted.csv", quoted)).unwrap(), expected);
}

#[test]
fn every_cut_of_a_compressed_file_is_an_error() {
    let folder = Folder::new();
    let text = "src,dst\n".to_owned() + &"12,34\n56,78\n".repeat(50);
    for (name, bytes) in
        [("e.csv.gz", gzip(text.as_bytes())), ("e.csv.zst", zstd::encode_all(text.as_bytes(), 1).unwrap())]
    {
        for end in 0..bytes.len() {
            let path = folder.file(name, &bytes[..end]);
            let error = edges(&path).expect_err("a cut file is no shorter file");
            let expected = match end {
                0 => "is empty",
                1..4 => "does not begin like it",
                _ => "is cut off",
            };
            let text = message(&folder, &error);
            assert!(text.contains(expected) || end < 4 && text.contains("is cut off"), "{end}: {text}");
        }
    }
}

#[test]
fn a_half_gzipped_file_says_where_it_ends() {
    let folder = Folder::new();
    let (text, _) = many_lines();
    let packed = gzip(text.as_bytes());
    let path = folder.file("half.csv.gz", &packed[..packed.len() / 2]);
    let error = edges(&path).unwrap_err();
    let FileError::Truncated { bytes, line, .. } = &error else { panic!("{error}") };
    assert_eq!(*bytes, packed.len() as u64 / 2);
    assert!((40_000..80_000).contains(line), "{line}");
    assert!(error.help().contains("gzip -t"));
}

#[test]
fn damage_inside_a_compressed_file_is_an_error() {
    let folder = Folder::new();
    let (text, _) = many_lines();
    let mut packed = gzip(text.as_bytes());
    let checksum = packed.len() - 6;
    packed[checksum] ^= 1;
    let error = edges(&folder.file("e.csv.gz", &packed)).unwrap_err();
    assert!(matches!(error, FileError::Damaged { codec: Codec::Gzip, .. }), "{error}");
    let trailing = [gzip(b"1,2\n"), b"rubbish".to_vec()].concat();
    let error = edges(&folder.file("t.csv.gz", trailing)).unwrap_err();
    assert!(matches!(error, FileError::Damaged { .. } | FileError::Truncated { .. }), "{error}");
}

#[test]
fn other_formats_are_refused_by_name() {
    let folder = Folder::new();
    for (bytes, words) in [
        (&b"PK\x03\x04xxxx"[..], "e is a ZIP archive, not CSV or TSV text (plain, .gz or .zst)"),
        (b"\xff\xfe1\0", "e is UTF-16 text (write it as UTF-8), not CSV or TSV text (plain, .gz or .zst)"),
    ] {
        assert_eq!(message(&folder, &edges(&folder.file("e", bytes)).unwrap_err()), words);
    }
    let parquet = folder.file("e", b"PAR1xxxx");
    let error = edges(&parquet).unwrap_err();
    assert!(message(&folder, &error).starts_with("e is damaged or cut off: "), "{error}");
    // Only text can be read from a pipe.
    let Err(error) = Source::open(&parquet) else { panic!("it is no text") };
    assert_eq!(message(&folder, &error), "e is a Parquet file, not CSV or TSV text (plain, .gz or .zst)");
    let error = edges(&folder.file("e.csv.gz", "1,2\n")).unwrap_err();
    assert_eq!(message(&folder, &error), "e.csv.gz is named as gzip but does not begin like it");
    let error = edges(&folder.0.path().join("none.csv")).unwrap_err();
    assert_eq!(message(&folder, &error), "none.csv cannot be opened");
    let error = edges(folder.0.path()).unwrap_err();
    assert!(matches!(error, FileError::Open { .. }), "{error}");
    let error = edges(&folder.file("long.csv", vec![b'1'; 3 << 20])).unwrap_err();
    assert_eq!(message(&folder, &error), "long.csv has a line of more than 1048576 bytes at line 1");
}
