//! Conversion between IEEE 754 binary16 and `f32`.
//!
//! The crate `half` was measured and not used (`docs/design/0015-crates.md`); the tests compare with it bit by bit.

const SIGN: u16 = 0x8000;
const INFINITY: u16 = 0x7c00;

/// The binary16 nearest to `value`, with ties to even. Values beyond 65,504 become infinity; a NaN stays a NaN.
pub fn f16_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & SIGN;
    let exponent = (bits >> 23 & 0xff) as i32 - 127;
    let mantissa = bits & 0x7f_ffff;
    if exponent == 128 {
        return sign | INFINITY | if mantissa == 0 { 0 } else { 0x200 };
    }
    if 15 < exponent {
        return sign | INFINITY;
    }
    if -14 <= exponent {
        let kept = ((exponent + 15) as u32) << 10 | mantissa >> 13;
        // A carry out of the mantissa increments the exponent, finally to infinity, as it should.
        return sign | rounded(kept, mantissa, 13) as u16;
    }
    if exponent < -25 {
        return sign;
    }
    let mantissa = mantissa | 0x80_0000;
    let shift = (-1 - exponent) as u32;
    sign | rounded(mantissa >> shift, mantissa, shift) as u16
}

/// Rounds `kept`, which is `whole >> shift`, to nearest with ties to even, by the bits that were shifted out.
fn rounded(kept: u32, whole: u32, shift: u32) -> u32 {
    let rest = whole & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    kept + u32::from(half < rest || (half == rest && kept & 1 == 1))
}

/// The exact value of a binary16. Without branches, so that loops over it become vector instructions.
#[inline]
pub fn f32_from_f16(bits: u16) -> f32 {
    /// 2^112: the difference between the exponent bias of an `f32` and that of a binary16.
    const BIAS: f32 = f32::from_bits(239 << 23);
    let sign = u32::from(bits & SIGN) << 16;
    let magnitude = u32::from(bits & !SIGN) << 13;
    let finite = (f32::from_bits(magnitude) * BIAS).to_bits();
    let special = magnitude | 0x7f80_0000;
    f32::from_bits(sign | if bits & INFINITY == INFINITY { special } else { finite })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back() {
        for bits in 0..=u16::MAX {
            let value = f32_from_f16(bits);
            if value.is_nan() {
                assert!(f32_from_f16(f16_from_f32(value)).is_nan(), "{bits:#x}");
            } else {
                assert_eq!(f16_from_f32(value), bits, "{bits:#x}");
            }
        }
        assert_eq!(f32_from_f16(0x3c00), 1.0);
        assert_eq!(f32_from_f16(0xc000), -2.0);
        assert_eq!(f32_from_f16(0x7bff), 65_504.0);
    }

    #[test]
    fn between_two_halves_the_nearest_is_taken_and_ties_go_to_even() {
        for low in 0..INFINITY - 1 {
            let (below, above) = (f32_from_f16(low), f32_from_f16(low + 1));
            let middle = (below + above) / 2.0;
            let even = if low & 1 == 0 { low } else { low + 1 };
            assert_eq!(f16_from_f32(middle), even, "the middle above {low:#x}");
            assert_eq!(f16_from_f32(middle.next_down()), low, "below the middle above {low:#x}");
            assert_eq!(f16_from_f32(middle.next_up()), low + 1, "above the middle above {low:#x}");
            assert_eq!(f16_from_f32(-middle), even | SIGN);
        }
        assert_eq!(f16_from_f32(65_520.0), INFINITY);
        assert_eq!(f16_from_f32(65_519.996), 0x7bff);
        assert_eq!(f16_from_f32(f32::NEG_INFINITY), SIGN | INFINITY);
    }

    /// NaNs are excluded: those of this module have no payload, and those of `half` keep it.
    #[test]
    fn the_crate_half_gives_the_same_bits() {
        for bits in (0..=u16::MAX).filter(|bits| !f32_from_f16(*bits).is_nan()) {
            let theirs = half::f16::from_bits(bits).to_f32_const();
            assert_eq!(f32_from_f16(bits).to_bits(), theirs.to_bits(), "{bits:#x}");
        }
        // The step is a prime, so that all exponents and roundings occur.
        for value in (0..=u32::MAX).step_by(4_099).map(f32::from_bits).filter(|value| !value.is_nan()) {
            assert_eq!(f16_from_f32(value), half::f16::from_f32_const(value).to_bits(), "{value:e}");
        }
    }
}
