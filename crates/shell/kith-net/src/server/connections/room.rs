//! How much buffer a request gets as its bytes arrive.

/// Requests up to this size are not charged: they fit into a connection's receive buffer.
pub const UNCHARGED_BYTES: usize = 16 << 10;

/// How much room a request of `total` bytes gets after `came` bytes of it have arrived: all of it once a quarter has
/// arrived, and twice the arrived bytes before. A request gets at least the uncharged room, so a header alone gets only
/// that, whatever length it claims.
pub(crate) fn room(total: usize, came: usize) -> usize {
    let earned = if total / 4 <= came { total } else { came.saturating_mul(2) };
    total.min(earned.max(UNCHARGED_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_claim_gets_no_room_before_its_bytes_come() {
        assert_eq!(room(80 << 20, 16), UNCHARGED_BYTES);
        assert_eq!(room(80 << 20, 1 << 20), 2 << 20);
        assert_eq!(room(80 << 20, 20 << 20), 80 << 20);
        assert_eq!(room(100, 3), 100);
    }

    proptest! {
        #[test]
        fn room_is_enough_to_go_on_and_at_most_four_times_what_came(total in 1usize..1 << 28, share in 0.0f64..1.0) {
            let came = ((total as f64 * share) as usize).min(total - 1);
            let room = room(total, came);
            prop_assert!(came < room && room <= total);
            prop_assert!(room <= (4 * came + 4).max(UNCHARGED_BYTES));
        }
    }
}
