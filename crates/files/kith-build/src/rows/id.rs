//! Parses decimal ids from bytes. This is the innermost loop of a load.

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAnId {
    /// The text is empty.
    Empty,
    /// The text has a character that is not a decimal digit.
    NotANumber,
    /// The text is a negative whole number.
    Negative,
    /// The number needs more than 64 bits.
    TooLarge,
}

/// Parses an id, which consists of decimal digits only.
#[inline]
pub(crate) fn parse_id(text: &[u8]) -> Result<u64, NotAnId> {
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(why_not_an_id(text));
        }
        let next = value.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit)));
        value = next.ok_or_else(|| why_not_an_id(text))?;
    }
    if text.is_empty() { Err(NotAnId::Empty) } else { Ok(value) }
}

fn why_not_an_id(text: &[u8]) -> NotAnId {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match text {
        [b'-', rest @ ..] if digits(rest) => NotAnId::Negative,
        _ if digits(text) => NotAnId::TooLarge,
        _ => NotAnId::NotANumber,
    }
}

/// The number of digits that cannot overflow 64 bits.
const SAFE_DIGITS: usize = 19;

/// Takes `digits end` off the front. Returns the id and the number of bytes of both. `None` for anything unusual, which the
/// slow path then examines, and if `bytes` ends before `end`.
#[inline]
pub(crate) fn take_plain_id(bytes: &[u8], end: u8) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(SAFE_DIGITS + 1).enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (byte == end && index > 0).then_some((value, index + 1));
        }
        if index == SAFE_DIGITS {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_any_u64_in_decimal() {
        assert_eq!(parse_id(b"0"), Ok(0));
        assert_eq!(parse_id(b"007"), Ok(7));
        assert_eq!(parse_id(b"18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn everything_else_has_a_reason() {
        let cases: [(&[u8], NotAnId); 9] = [
            (b"", NotAnId::Empty),
            (b" 7 ", NotAnId::NotANumber),
            (b"-1", NotAnId::Negative),
            (b"-", NotAnId::NotANumber),
            (b"+1", NotAnId::NotANumber),
            (b"1.0", NotAnId::NotANumber),
            (b"12x", NotAnId::NotANumber),
            (b"18446744073709551616", NotAnId::TooLarge),
            (b"99999999999999999999999", NotAnId::TooLarge),
        ];
        for (text, fault) in cases {
            assert_eq!(parse_id(text), Err(fault), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn the_fast_path_takes_plain_ids_and_leaves_the_rest() {
        assert_eq!(take_plain_id(b"12,34", b','), Some((12, 3)));
        assert_eq!(take_plain_id(b"9999999999999999999\n", b'\n'), Some((9_999_999_999_999_999_999, 20)));
        for text in [&b",1"[..], b"", b"12", b"1x,", b" 1,", b"18446744073709551615,", b"\"1\","] {
            assert_eq!(take_plain_id(text, b','), None, "{}", String::from_utf8_lossy(text));
        }
    }
}
