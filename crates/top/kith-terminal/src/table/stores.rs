//! Stores and their versions, as text for people.

use super::{Side, bytes, count, date, plural, table};
use crate::reply::stores::{FollowedReply, HistoryReply, StoreReply, SwapReply, VersionReply};
use kith_schema::Schema;
use kith_wire::documents::{FrozenDocument, HoldsDocument};

/// Returns one line per store.
pub fn list(stores: &[StoreReply]) -> String {
    if stores.is_empty() {
        return "there are no stores: kith store create NAME, or kith load graph EDGES --graph NAME\n"
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
                (Some(running), _) => running.push.clone(),
                (None, Some(frozen)) => format!("frozen by {}", frozen.who),
                (None, None) => String::new(),
            },
        ]
    });
    table(&columns, rows)
}

/// Returns a store with its definition.
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
        format!("keeps {} versions besides the current one", definition.retain),
    ];
    let copies = definition.replication.map(|copies| format!("held by {copies} groups"));
    let agree =
        (1 < definition.required_reads).then(|| format!("{} answers must agree", definition.required_reads));
    let quota = definition.quota_bytes.map(|quota| format!("quota {}", bytes(quota)));
    let keys =
        definition.read_quota_keys.map(|keys| format!("at most {} keys read per second", count(keys.get())));
    let read =
        definition.read_quota_bytes.map(|read| format!("at most {} read per second", bytes(read.get())));
    let least = (0 < definition.records_min).then(|| format!("at least {} records", definition.records_min));
    let drop =
        definition.drop_percent_max.map(|percent| format!("at most {percent} % fewer records per push"));
    let owner = definition.owner.as_ref().map(|owner| format!("only {owner} may push"));
    let running = store.running.as_ref().map(|running| {
        format!(
            "{} of version {} has run since {}, by {} at {}",
            running.push,
            running.version,
            date(running.since),
            running.who,
            running.by
        )
    });
    let frozen = store.frozen.as_ref().map(|frozen| frozen_by(&frozen.who, frozen.since));
    lines.extend(
        [copies, agree, quota, keys, read, least, drop, owner, running, frozen].into_iter().flatten(),
    );
    lines.join("\n") + "\n" + &fields(store)
}

/// Returns the fields of the records that are served, or, if none are served yet, of the records of the first version.
fn fields(store: &StoreReply) -> String {
    let (what, schema) = match (&store.served_schema, &store.definition.schema) {
        (Some(served), _) => ("records have", served),
        (None, Some(first)) if store.version.is_none() => ("records of the first version have", first),
        (None, _) => return String::new(),
    };
    let Ok(schema) = schema.parse::<Schema>() else { return format!("{what} {schema}\n") };
    let columns = [("field", Side::Left), ("type", Side::Left), ("notes", Side::Left)];
    let rows = schema.fields().iter().map(|field| {
        let null = field.is_nullable().then_some("may be null");
        let default = field.has_default().then_some("has a default");
        let notes: Vec<&str> = null.into_iter().chain(default).collect();
        vec![field.name().to_owned(), field.field_type().to_string(), notes.join(", ")]
    });
    format!("{what} {}:\n{}", plural(schema.fields().len() as u64, "field"), table(&columns, rows))
}

fn frozen_by(who: &str, since: u64) -> String {
    format!("frozen by {who} since {}: pushes and loads are refused", date(since))
}

/// Returns one line per version, the newest first, and whether pushes are refused.
pub fn versions(versions: &[VersionReply], frozen: Option<&FrozenDocument>) -> String {
    let frozen = frozen.map_or(String::new(), |frozen| frozen_by(&frozen.who, frozen.since) + "\n");
    if versions.is_empty() {
        return "nothing has been pushed yet\n".to_owned() + &frozen;
    }
    let columns = [
        ("version", Side::Right),
        ("state", Side::Left),
        ("records", Side::Right),
        ("bytes", Side::Right),
        ("pushed at", Side::Left),
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
            date(version.pushed_at),
            [held, without].into_iter().flatten().collect::<Vec<_>>().join(", "),
        ]
    });
    table(&columns, rows) + &frozen
}

/// Returns one line per entry, the newest first.
pub fn history(history: &[HistoryReply]) -> String {
    let columns = [
        ("at", Side::Left),
        ("who", Side::Left),
        ("what", Side::Left),
        ("version", Side::Right),
        ("before", Side::Right),
        ("result", Side::Left),
    ];
    let rows = history.iter().rev().map(|entry| {
        vec![
            date(entry.at),
            entry.who.clone(),
            entry.action.clone(),
            entry.version.to_string(),
            entry.before.to_string(),
            entry.result.clone(),
        ]
    });
    table(&columns, rows)
}

/// Returns the result of a swap or rollback.
pub fn swapped(reply: &SwapReply) -> String {
    let SwapReply { store, version, before, before_state, undo, flip_us, routers } = reply;
    let state = before_state.as_deref().unwrap_or("not kept");
    let undo = undo.as_ref().map(|command| format!("undo: {command}\n")).unwrap_or_default();
    let late = not_followed(routers);
    format!(
        "store {store} serves version {version}; {before} is {state}; the flip took {flip_us} us\n{late}{undo}"
    )
}

/// Returns one line per router that may still serve an older version.
pub fn not_followed(routers: &[FollowedReply]) -> String {
    let late = routers.iter().filter(|router| router.state != "seen");
    let line = late.map(|router| match router.state.as_str() {
        "expired" => format!(
            "router {} has lost the metadata store: it serves what it last knew, and says so\n",
            router.router
        ),
        _ => format!(
            "router {} has not confirmed that it serves it: look at `kith cluster status`\n",
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
