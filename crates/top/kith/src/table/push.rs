//! The results of builds and pushes of stores, as text for people.

use super::{bytes, count, load::dropped, plural};
use crate::publish::DroppedLines;
use crate::store::{BuildReply, CancelReply, ChangesReply, DiscardReply, PartitionReply, PushReply};

/// Returns the dropped rows with their reasons, then where the version is and how to push it.
pub fn built(reply: &BuildReply) -> String {
    let mut text = dropped_rows(&reply.dropped) + &changes(reply.changes.as_ref());
    for change in &reply.schema_changes {
        text += &format!("{change}\n");
    }
    text += &warned(reply.warning.as_deref());
    let records = plural(reply.records, "record");
    let (Some(version), Some(folder)) = (reply.version, &reply.folder) else {
        return text
            + &format!(
                "dry run: {} checked, nothing built, {:.1} s\n",
                plural(reply.records, "row"),
                reply.seconds
            );
    };
    let twice = twice(reply.duplicates);
    text += &format!(
        "built version {version} of store {} in {folder}: {records}, {}{twice}, {:.1} s\n",
        reply.store,
        bytes(reply.bytes),
        reply.seconds
    );
    text + &format!("push it: kith store push {} {folder}\n", reply.store)
}

/// Returns the dropped rows with their reasons, the changes of the schema, what serves now and how to undo the push.
pub fn pushed(reply: &PushReply) -> String {
    let mut text = dropped_rows(&reply.dropped) + &changes(reply.changes.as_ref());
    for change in &reply.schema_changes {
        text += &format!("{change}\n");
    }
    text += &warned(reply.warning.as_deref());
    text += &format!(
        "store {} now serves version {}: {}, {}{}, {:.1} s{}\n",
        reply.store,
        reply.version,
        plural(reply.records, "record"),
        bytes(reply.bytes),
        twice(reply.duplicates),
        reply.seconds,
        reply.flip_us.map(|us| format!(", the flip took {us} us")).unwrap_or_default()
    );
    text += &super::stores::not_followed(&reply.routers);
    if let Some(nodes) = reply.excluded.as_ref().filter(|nodes| !nodes.is_empty()) {
        let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
        text += &format!(
            "nodes {} do not have it yet: they fetch it by themselves, and others answer\n",
            nodes.join(", ")
        );
    }
    text + &reply.undo.as_ref().map(|undo| format!("undo: {undo}\n")).unwrap_or_default()
}

/// Returns a line about the cancelled push and the version that stays served.
pub fn cancelled(reply: &CancelReply) -> String {
    let CancelReply { store, push, version, serves, .. } = reply;
    let what = version.map_or(String::new(), |version| format!(" of version {version}"));
    let serves = serves.map_or("no version yet".to_owned(), |version| format!("version {version}"));
    format!("cancelled {push}{what}; store {store} serves {serves}\n")
}

/// Returns a line about the partition that was built.
pub fn partition(reply: &PartitionReply) -> String {
    warned(reply.warning.as_deref())
        + &format!(
            "built partition {} of version {} of store {} in {}: {}, {}\n",
            reply.partition,
            reply.version,
            reply.store,
            reply.folder,
            plural(reply.records, "record"),
            bytes(reply.bytes)
        )
}

/// Returns a line about the partitions that were removed.
pub fn discarded(reply: &DiscardReply) -> String {
    format!("removed {} from {}\n", plural(reply.removed, "partition"), reply.parts)
}

fn warned(warning: Option<&str>) -> String {
    warning.map_or_else(String::new, |warning| format!("warning: {warning}\n"))
}

fn changes(changes: Option<&ChangesReply>) -> String {
    changes.map_or_else(String::new, |it| {
        format!(
            "{} added, {} replaced, {} deleted, {} to delete were absent; {} partitions, {} new, {} to move\n",
            count(it.added),
            count(it.replaced),
            count(it.deleted),
            count(it.absent),
            it.partitions,
            bytes(it.bytes_changed),
            bytes(it.bytes_moved)
        )
    })
}

fn dropped_rows(rows: &[DroppedLines]) -> String {
    if rows.is_empty() { String::new() } else { dropped("dropped rows", rows) + "\n" }
}

fn twice(duplicates: u64) -> String {
    match duplicates {
        0 => String::new(),
        _ => format!(", {} dropped as duplicates", plural(duplicates, "row")),
    }
}
