//! Stores and their versions for people.

use super::{Side, bytes, count, table};
use crate::store::{FollowedReply, HistoryReply, StoreReply, SwapReply, VersionReply};
use kith_wire::documents::{FrozenDocument, HoldsDocument};

/// One line per store.
pub fn list(stores: &[StoreReply]) -> String {
    if stores.is_empty() {
        return "there is no store: kith store create NAME, or kith load graph EDGES --graph NAME\n"
            .to_owned();
    }
    let columns = [
        ("store", Side::Left),
        ("holds", Side::Left),
        ("version", Side::Right),
        ("records", Side::Right),
        ("bytes", Side::Right),
        ("kept", Side::Right),
        ("running", Side::Left),
    ];
    let rows = stores.iter().map(|store| {
        vec![
            store.store.clone(),
            holds(&store.definition.holds),
            store.version.map_or("none".to_owned(), |version| version.to_string()),
            count(store.records),
            bytes(store.bytes),
            count(store.kept as u64),
            match (&store.running, &store.frozen) {
                (Some(running), _) => format!("push {}", running.push),
                (None, Some(frozen)) => format!("frozen by {}", frozen.who),
                (None, None) => String::new(),
            },
        ]
    });
    table(&columns, rows)
}

/// A store with its definition.
pub fn describe(store: &StoreReply) -> String {
    let definition = &store.definition;
    let mut lines = vec![
        format!("store {}: {}", store.store, holds(&definition.holds)),
        match store.version {
            Some(version) => {
                format!("version {version}: {} records, {}", count(store.records), bytes(store.bytes))
            }
            None => "no version is served yet".to_owned(),
        },
        format!("keeps {} versions beside the current one", definition.retain),
    ];
    let copies = definition.replication.map(|copies| format!("held by {copies} groups"));
    let agree =
        (1 < definition.required_reads).then(|| format!("{} answers must agree", definition.required_reads));
    let quota = definition.quota_bytes.map(|quota| format!("quota {}", bytes(quota)));
    let keys = definition.read_quota_keys.map(|keys| format!("{} keys read a second", count(keys.get())));
    let read = definition.read_quota_bytes.map(|read| format!("{} read a second", bytes(read.get())));
    let least = (0 < definition.records_min).then(|| format!("at least {} records", definition.records_min));
    let drop = definition.drop_percent_max.map(|percent| format!("at most {percent} % fewer records a push"));
    let owner = definition.owner.as_ref().map(|owner| format!("pushed by {owner} only"));
    let schema = definition.schema.as_ref().map(|schema| format!("records of {schema}"));
    let running = store.running.as_ref().map(|running| {
        format!(
            "push {} of version {} runs, by {} at {}",
            running.push, running.version, running.who, running.by
        )
    });
    let frozen = store.frozen.as_ref().map(|frozen| frozen_by(&frozen.who));
    lines.extend(
        [copies, agree, quota, keys, read, least, drop, owner, schema, running, frozen].into_iter().flatten(),
    );
    lines.join("\n") + "\n"
}

fn frozen_by(who: &str) -> String {
    format!("frozen by {who}: pushes and loads are refused")
}

/// One line per version, the newest first; then whether pushes are refused.
pub fn versions(versions: &[VersionReply], frozen: Option<&FrozenDocument>) -> String {
    let frozen = frozen.map_or(String::new(), |frozen| frozen_by(&frozen.who) + "\n");
    if versions.is_empty() {
        return "nothing was pushed yet\n".to_owned() + &frozen;
    }
    let columns = [
        ("version", Side::Right),
        ("state", Side::Left),
        ("records", Side::Right),
        ("bytes", Side::Right),
        ("pushed at", Side::Right),
        ("notes", Side::Left),
    ];
    let rows = versions.iter().rev().map(|version| {
        let held = version.held.then(|| "held".to_owned());
        let nodes: Vec<String> = version.excluded.iter().map(u32::to_string).collect();
        let without = (!nodes.is_empty()).then(|| format!("without node {}", nodes.join(", ")));
        vec![
            version.version.to_string(),
            version.state.clone(),
            count(version.records),
            bytes(version.bytes),
            version.pushed_at.to_string(),
            [held, without].into_iter().flatten().collect::<Vec<_>>().join(", "),
        ]
    });
    table(&columns, rows) + &frozen
}

/// One line per entry, the newest first.
pub fn history(history: &[HistoryReply]) -> String {
    let columns = [
        ("at", Side::Right),
        ("who", Side::Left),
        ("what", Side::Left),
        ("version", Side::Right),
        ("before", Side::Right),
        ("result", Side::Left),
    ];
    let rows = history.iter().rev().map(|entry| {
        vec![
            entry.at.to_string(),
            entry.who.clone(),
            entry.action.clone(),
            entry.version.to_string(),
            entry.before.to_string(),
            entry.result.clone(),
        ]
    });
    table(&columns, rows)
}

/// What a swap or rollback did.
pub fn swapped(reply: &SwapReply) -> String {
    let SwapReply { store, version, before, before_state, undo, flip_us, routers } = reply;
    let state = before_state.as_deref().unwrap_or("not kept");
    let undo = undo.as_ref().map(|command| format!("undo: {command}\n")).unwrap_or_default();
    let late = not_followed(routers);
    format!(
        "store {store} serves version {version}; {before} is {state}; the flip took {flip_us} us\n{late}{undo}"
    )
}

/// Routers that may serve something older.
pub fn not_followed(routers: &[FollowedReply]) -> String {
    let late = routers.iter().filter(|router| router.state != "seen");
    let line = late.map(|router| match router.state.as_str() {
        "expired" => format!(
            "router {} has lost the metadata store: it serves what it knew, and says so\n",
            router.router
        ),
        _ => format!(
            "router {} has not said that it serves it: look at `kith cluster status`\n",
            router.router
        ),
    });
    line.collect()
}

fn holds(holds: &HoldsDocument) -> String {
    match holds {
        HoldsDocument::Graph => "graph".to_owned(),
        HoldsDocument::Values { key, value, .. } => format!("{key} to {value}"),
    }
}
