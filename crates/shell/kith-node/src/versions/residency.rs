//! Tracks which versions are not completely in memory. Their requests run on threads that may wait for the disk, so that
//! they do not delay other requests.

use super::HeldStores;
use kith_engine::Residency;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The interval at which each version is checked.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The number of checks in a row that must find every page in memory before a cold version counts as warm.
const WHOLE_LOOKS: u32 = 3;

/// The recent checks of a version. It is cold as soon as a page is missing, and warm after several checks in a row without a
/// missing page.
#[derive(Debug, Default)]
struct Looks {
    whole: u32,
}

impl Looks {
    /// Returns whether the version is cold from now on; `None` leaves this unchanged.
    fn on(&mut self, residency: Residency) -> Option<bool> {
        if !residency.is_whole() {
            self.whole = 0;
            return Some(true);
        }
        self.whole += 1;
        (self.whole == WHOLE_LOOKS).then_some(false)
    }
}

/// Checks all versions regularly until `stop` is cancelled.
pub(crate) async fn follow(held: Arc<HeldStores>, stop: CancellationToken) {
    let mut looks: BTreeMap<(String, u64), Looks> = BTreeMap::new();
    while stop.run_until_cancelled(tokio::time::sleep(LOOK_INTERVAL)).await.is_some() {
        let readers = held.open.readers();
        looks.retain(|version, _| readers.iter().any(|(held, _)| held == version));
        for (version, reader) in readers {
            let residency = reader.residency();
            let (store, number) = (version.0.clone(), version.1.to_string());
            metrics::gauge!("kith_node_resident_ratio", "store" => store, "version" => number)
                .set(residency.ratio());
            if let Some(is_cold) = looks.entry(version.clone()).or_default().on(residency)
                && reader.is_cold() != is_cold
            {
                let (store, version) = version;
                tracing::info!(
                    store,
                    version,
                    is_cold,
                    ratio = residency.ratio(),
                    "a version's share in memory changed"
                );
                reader.set_cold(is_cold);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_makes_it_cold_and_only_several_looks_warm() {
        let (part, whole) = (Residency { pages: 9, resident: 8 }, Residency { pages: 9, resident: 9 });
        let mut looks = Looks::default();
        let seen: Vec<_> =
            [part, whole, whole, part, whole, whole, whole, whole].map(|look| looks.on(look)).into();
        let (cold, warm) = (Some(true), Some(false));
        assert_eq!(seen, [cold, None, None, cold, None, None, warm, None]);
    }
}
