//! The checksum of an id set, computed as in the reference answers. It allows two sets to be compared without listing them.

use sha2::{Digest, Sha256};
use std::{fmt::Write as _, io::Write as _};

/// The size of the pieces in which the text is hashed, approximately.
const PIECE_BYTES: usize = 16 << 10;

/// Returns the SHA-256, in hexadecimal, of the ids in the given order, each in decimal and followed by a line feed.
pub fn checksum(ids: impl Iterator<Item = u64>) -> String {
    let mut hash = Sha256::new();
    let mut text = Vec::with_capacity(PIECE_BYTES + 32);
    for id in ids {
        writeln!(text, "{id}").expect("writing to memory cannot fail");
        if PIECE_BYTES <= text.len() {
            hash.update(&text);
            text.clear();
        }
    }
    hash.update(&text);
    let digest = hash.finalize();
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to memory cannot fail");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum([].into_iter()), empty);
        // printf '1\n22\n' | sha256sum
        let two = "b779e8f248c5a6ba9dea44fae25e1cf6ce42b0045246bb6eef443c75cc652b0c";
        assert_eq!(checksum([1, 22].into_iter()), two);
    }

    #[test]
    fn pieces_do_not_show() {
        let ids = || 0..20_000_u64;
        let whole: String = ids().map(|id| format!("{id}\n")).collect();
        let expected: String = Sha256::digest(whole).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(checksum(ids()), expected);
    }
}
