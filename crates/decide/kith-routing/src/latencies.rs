//! Histograms of latencies that need little memory and are precise enough to compare the p99 of minutes.

use std::time::Duration;

/// Latencies above 2^37 nanoseconds, which is about two minutes, count as two minutes.
const DOUBLINGS: u32 = 37;

/// The histogram that processes report: a bucket is an eighth of a doubling wide.
pub type ReportedLatencies = Latencies<8>;

/// A histogram of latencies. `STEPS`, a power of two, is the number of buckets per doubling, which decides the precision.
/// With 32, a bucket is 3 % wide, a sixth of the smallest difference that matters, and the histogram takes 8 KiB; with 4, a
/// bucket is a quarter wide, and it takes 1 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies<const STEPS: u64 = 32> {
    /// The number of reads per bucket, by latency. The buckets have equal ratios.
    buckets: Box<[u64]>,
    count: u64,
}

impl<const STEPS: u64> Default for Latencies<STEPS> {
    fn default() -> Self {
        Self { buckets: vec![0; Self::BUCKETS].into_boxed_slice(), count: 0 }
    }
}

impl<const STEPS: u64> Latencies<STEPS> {
    const STEPS_LOG2: u32 = STEPS.trailing_zeros();
    pub(crate) const BUCKETS: usize = (DOUBLINGS - Self::STEPS_LOG2 + 1) as usize * STEPS as usize;

    /// Records the latency of a read.
    pub fn record(&mut self, latency: Duration) {
        self.buckets[Self::bucket_of(latency)] += 1;
        self.count += 1;
    }

    /// The number of reads.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds the reads of another histogram. O(buckets).
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
    }

    /// Returns an upper bound of the given quantile, in thousandths (990 = p99): the upper end of its bucket. `None` if
    /// there are no reads. O(buckets).
    ///
    /// # Panics
    /// If `share` is above 1,000.
    pub fn per_mille(&self, share: u64) -> Option<Duration> {
        Self::per_mille_of(&[self], share)
    }

    /// Like [`Latencies::per_mille`], over several histograms together.
    ///
    /// # Panics
    /// If `share` is above 1,000.
    pub fn per_mille_of(parts: &[&Self], share: u64) -> Option<Duration> {
        assert!(share <= 1_000, "{share} in a thousand");
        let count: u64 = parts.iter().map(|part| part.count).sum();
        let rank = (count * share).div_ceil(1_000).max(1);
        let mut below = 0;
        let index = (0..Self::BUCKETS).find(|&bucket| {
            below += parts.iter().map(|part| part.buckets[bucket]).sum::<u64>();
            rank <= below
        });
        index.map(|index| Duration::from_nanos(Self::end_of(index as u64)))
    }

    /// The number of reads in buckets above that of `latency`. O(buckets).
    pub fn above(&self, latency: Duration) -> u64 {
        self.buckets[Self::bucket_of(latency) + 1..].iter().sum()
    }

    /// Returns the number of reads per bucket, from short to long, without empty buckets at the end.
    /// [`Latencies::of_counts`] reads this.
    pub fn counts(&self) -> &[u64] {
        let filled = self.buckets.iter().rposition(|reads| 0 < *reads).map_or(0, |last| last + 1);
        &self.buckets[..filled]
    }

    /// Returns the histogram with these [`Latencies::counts`], which must have the same `STEPS`. Counts beyond the last
    /// bucket are added to it. O(buckets).
    pub fn of_counts(counts: &[u64]) -> Self {
        let mut latencies = Self::default();
        for (index, reads) in counts.iter().enumerate() {
            let bucket = &mut latencies.buckets[index.min(Self::BUCKETS - 1)];
            *bucket = bucket.saturating_add(*reads);
        }
        latencies.count = latencies.buckets.iter().fold(0, |count, reads| count.saturating_add(*reads));
        latencies
    }

    /// Returns the reads that were recorded since `earlier`, an earlier state of this histogram. O(buckets).
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = Self::default();
        for (bucket, (now, then)) in since.buckets.iter_mut().zip(self.buckets.iter().zip(&earlier.buckets)) {
            *bucket = now.saturating_sub(*then);
            since.count = since.count.saturating_add(*bucket);
        }
        since
    }

    fn bucket_of(latency: Duration) -> usize {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        if nanos < STEPS {
            return nanos as usize;
        }
        // The leading bit selects the doubling; the next bits select the step in it.
        let doubling = nanos.ilog2() - Self::STEPS_LOG2;
        let step = (nanos >> doubling) - STEPS;
        let index = (u64::from(doubling) + 1) * STEPS + step;
        (index as usize).min(Self::BUCKETS - 1)
    }

    /// Returns the greatest number of nanoseconds in a bucket.
    fn end_of(index: u64) -> u64 {
        let (doubling, step) = (index / STEPS, index % STEPS);
        if doubling == 0 { step } else { ((STEPS + step + 1) << (doubling - 1)) - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets_meet<const STEPS: u64>() {
        let (bucket_of, end_of) = (Latencies::<STEPS>::bucket_of, Latencies::<STEPS>::end_of);
        for nanos in (0..5_000).chain([1 << 20, (1 << 30) + 12_345, 100_000_000_000]) {
            let index = bucket_of(Duration::from_nanos(nanos));
            let end = end_of(index as u64);
            assert!(nanos <= end && end <= nanos + nanos / STEPS, "{nanos} in {index}, which ends at {end}");
            assert_eq!(bucket_of(Duration::from_nanos(end)), index);
            assert_eq!(bucket_of(Duration::from_nanos(end + 1)), index + 1);
        }
        assert_eq!(bucket_of(Duration::MAX), Latencies::<STEPS>::BUCKETS - 1);
    }

    #[test]
    fn a_bucket_ends_where_the_next_begins() {
        buckets_meet::<4>();
        buckets_meet::<32>();
    }

    #[test]
    fn shares_of_reads_are_found() {
        let mut reads = Latencies::<32>::default();
        assert_eq!(reads.per_mille(990), None);
        (1..=1_000).for_each(|millis| reads.record(Duration::from_millis(millis)));
        for (share, millis) in [(500, 500), (990, 990), (1_000, 1_000), (0, 1)] {
            let found = reads.per_mille(share).unwrap();
            let exact = Duration::from_millis(millis);
            assert!(exact <= found && found <= exact * 33 / 32, "{share}: {found:?}");
        }
        assert!((100..=130).contains(&reads.above(Duration::from_millis(870))));
        assert_eq!(reads.above(Duration::from_secs(2)), 0);
        assert_eq!(Latencies::<32>::of_counts(reads.counts()), reads);
        assert!(Latencies::<32>::default().counts().is_empty());
        let mut twice = reads.clone();
        twice.add(&reads);
        assert_eq!((twice.count(), twice.per_mille(990)), (2_000, reads.per_mille(990)));
        assert_eq!((twice.since(&reads), reads.since(&twice).count()), (reads, 0));
    }

    #[test]
    fn counts_from_elsewhere_do_no_harm() {
        let many = Latencies::<4>::of_counts(&vec![u64::MAX; 10_000]);
        assert_eq!(many.count(), u64::MAX);
        assert!(many.counts().len() <= Latencies::<4>::BUCKETS);
    }
}
