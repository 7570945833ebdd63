//! Metrics of stores: the age of the served version, how pushes end, and whether the store is frozen. There is one set of
//! labels per store, so their number is the number of stores.

use kith_topology::versions::UnixMillis;
use kith_wire::documents::StoreDocument;
use std::{collections::BTreeMap, time::Duration};

/// The facts about one store that the metrics show.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StoreFacts {
    /// The time since the served version was pushed; `None` if none is served.
    pub version_age: Option<Duration>,
    /// The time since the running push began; `None` if none is running.
    pub push_runs: Option<Duration>,
    pub is_frozen: bool,
}

/// Returns what the metrics show of `store` now.
pub(crate) fn observed(store: &StoreDocument, now: UnixMillis) -> StoreFacts {
    let since = |at: u64| Duration::from_millis(now.0.saturating_sub(at));
    StoreFacts {
        version_age: store.current().map(|current| since(current.pushed_at)),
        push_runs: store.running.as_ref().map(|running| since(running.since)),
        is_frozen: store.frozen.is_some(),
    }
}

/// Returns how the last push ended: `done`, `failed` or `cancelled`. `None` if the history contains no push.
pub(crate) fn last_push(store: &StoreDocument) -> Option<&'static str> {
    let last = store.history.iter().rev().find(|entry| entry.action == "push")?;
    Some(match (&last.cancelled, &last.failed) {
        (Some(_), _) => "cancelled",
        (None, Some(_)) => "failed",
        (None, None) => "done",
    })
}

/// Shows all stores in the metrics. Gauges of stores that are gone are reset.
pub(super) fn show(stores: &[StoreDocument], shown: &mut BTreeMap<String, StoreFacts>, now: UnixMillis) {
    let current: BTreeMap<String, StoreFacts> =
        stores.iter().map(|store| (store.name.clone(), observed(store, now))).collect();
    for name in shown.keys().filter(|name| !current.contains_key(*name)) {
        gauges(name, &StoreFacts::default());
    }
    for (name, observed) in &current {
        gauges(name, observed);
    }
    *shown = current;
}

fn gauges(store: &str, observed: &StoreFacts) {
    let seconds = |time: Option<Duration>| time.map_or(0.0, |time| time.as_secs_f64());
    let gauge =
        |name: &'static str, value: f64| metrics::gauge!(name, "store" => store.to_owned()).set(value);
    gauge("kith_router_store_version_age_seconds", seconds(observed.version_age));
    gauge("kith_router_store_push_running_seconds", seconds(observed.push_runs));
    gauge("kith_router_store_frozen", f64::from(u8::from(observed.is_frozen)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_wire::documents::{
        DOCUMENT_FORMAT, DefinitionDocument, HistoryDocument, HoldsDocument, RunningDocument, VersionDocument,
    };

    #[test]
    fn a_store_shows_the_age_of_what_it_serves_and_how_its_last_push_ended() {
        let mut store = StoreDocument {
            format: DOCUMENT_FORMAT,
            name: "people".to_owned(),
            charged_to: String::new(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 0,
            versions: vec![],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: vec![],
        };
        let now = UnixMillis(10_000);
        assert_eq!((observed(&store, now), last_push(&store)), (StoreFacts::default(), None));
        store.versions.push(VersionDocument {
            version: 1,
            state: "current".to_owned(),
            components: vec![],
            records: 0,
            bytes: 0,
            pushed_at: 4_000,
            held: false,
            excluded: vec![],
        });
        store.running = Some(RunningDocument {
            push: "p".to_owned(),
            version: 2,
            who: "ada".to_owned(),
            coordinator: "router 0".to_owned(),
            since: 11_000,
            missing_max: 0,
            offered: false,
        });
        let entry = |action: &str, cancelled: Option<&str>| HistoryDocument {
            at: 1,
            who: "ada".to_owned(),
            action: action.to_owned(),
            version: 1,
            before: 0,
            push: None,
            failed: None,
            cancelled: cancelled.map(str::to_owned),
        };
        store.history.extend([entry("push", Some("bob cancelled it")), entry("hold", None)]);
        let expected = StoreFacts {
            version_age: Some(Duration::from_secs(6)),
            push_runs: Some(Duration::ZERO),
            is_frozen: false,
        };
        assert_eq!(
            (observed(&store, now), last_push(&store)),
            (expected, Some("cancelled")),
            "clocks differ"
        );
    }
}
