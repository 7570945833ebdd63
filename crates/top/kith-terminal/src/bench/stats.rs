//! Medians of paired ratios, with confidence intervals.

use serde::Serialize;

/// A median and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The probability that the interval contains the true median. With fewer than six pairs, even their whole range has
    /// less than 95 %.
    pub confidence: f64,
    /// The number of pairs.
    pub pairs: usize,
}

/// The median of `values`, and the narrowest interval between two of them that contains the true median with 95 %
/// confidence (from order statistics, without assumptions about the distribution). `None` without values.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let middle = count / 2;
    let median = match count {
        0 => return None,
        _ if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    };
    let (skip, confidence) = narrowest(count);
    Some(Interval { median, low: sorted[skip], high: sorted[count - 1 - skip], confidence, pairs: count })
}

/// The number of values that may be left out at each end, with the resulting confidence. The median is outside if at
/// most `skip` of `count` fair coins show heads, or at most `skip` show tails.
fn narrowest(count: usize) -> (usize, f64) {
    let mut term = 0.5f64.powi(i32::try_from(count.min(1_000)).unwrap_or(1_000));
    if term == 0.0 || 1_000 < count {
        // The normal approximation is used where the exact terms would vanish.
        let skip = count as f64 / 2.0 - 0.98 * (count as f64).sqrt() - 1.0;
        return (skip.max(0.0) as usize, 0.95);
    }
    let (mut skip, mut tail) = (0, term);
    loop {
        term *= (count - skip) as f64 / (skip + 1) as f64;
        let wider = tail + term;
        if 0.05 < 2.0 * wider || count <= 2 * (skip + 1) {
            return (skip, (1.0 - 2.0 * tail).max(0.0));
        }
        tail = wider;
        skip += 1;
    }
}

/// The value that a share of `values` does not exceed. `None` without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(values: &[f64]) -> (f64, f64, f64) {
        let interval = median_interval(values).unwrap();
        (interval.low, interval.median, interval.high)
    }

    #[test]
    fn few_pairs_give_their_whole_range_and_say_how_sure_it_is() {
        assert_eq!(interval(&[3.0, 1.0, 2.0]), (1.0, 2.0, 3.0));
        assert_eq!(median_interval(&[3.0, 1.0, 2.0]).unwrap().confidence, 0.75);
        assert_eq!(median_interval(&[]), None);
        assert_eq!(interval(&[7.0]), (7.0, 7.0, 7.0));
    }

    #[test]
    fn order_statistics_are_those_of_the_tables() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(interval(&values), (6.0, 10.5, 15.0), "n = 20: the 6th and the 15th, 95.9 %");
        let values: Vec<f64> = (1..=6).map(f64::from).collect();
        assert_eq!(interval(&values), (1.0, 3.5, 6.0), "n = 6: the whole range, 96.9 %");
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(interval(&values), (40.0, 50.5, 61.0), "n = 100: the 40th and the 61st, 96.5 %");
    }

    #[test]
    fn many_pairs_use_the_normal_approximation() {
        let values: Vec<f64> = (1..=4_000).map(f64::from).collect();
        let (low, median, high) = interval(&values);
        assert_eq!(median, 2_000.5);
        assert!((1_930.0..1_940.0).contains(&low) && (2_061.0..2_071.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.99), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
