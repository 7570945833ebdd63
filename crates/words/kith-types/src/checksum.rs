//! CRC-32C, with the fastest method for each length.

use crc_fast::{CrcAlgorithm, Digest};

/// The length from which folding many bytes at once is faster than the processor's instruction for eight bytes.
const FOLDED_BYTES_MIN: usize = 512;

/// The checksum of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// The checksum of the bytes that `crc` covers, followed by `bytes`. With AVX-512, 1 KiB in the cache takes about 20 ns;
/// with the instruction alone it takes 45 ns.
#[inline]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    if bytes.len() < FOLDED_BYTES_MIN {
        return ::crc32c::crc32c_append(crc, bytes);
    }
    // The state of a digest is the checksum before its last inversion.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, (!crc).into());
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the checksum bit by bit, with the reversed polynomial of Castagnoli.
    fn plain(crc: u32, bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!crc, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1)))
        })
    }

    #[test]
    fn it_is_the_same_whatever_the_length_and_however_it_is_cut() {
        let bytes: Vec<u8> =
            (0..3_000u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        for length in (0..600).chain([1_000, 1_023, 1_024, 1_025, 2_047, 2_900]) {
            for (from, crc) in [(0, 0), (1, 1), (7, u32::MAX), (64, 0xdead_beef)] {
                let part = &bytes[from..from + length];
                assert_eq!(crc32c_append(crc, part), plain(crc, part), "{length} bytes from {from}");
            }
        }
        for cut in (0..bytes.len()).step_by(37) {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(crc32c_append(crc32c(head), tail), crc32c(&bytes), "{cut}");
        }
        assert_eq!(crc32c(b"123456789"), 0xe306_9283, "the check value of CRC-32/ISCSI");
    }
}
