//! The data that nodes hold of a store, as text for people.

use super::{Side, bytes, count, table};
use crate::{
    failure::ErrorReport,
    store::{ComponentReply, ExportReply, PlaceReply, VerifyReply},
};

/// The number of damaged files that are listed per component; the others are only counted.
const DAMAGES_SHOWN: usize = 5;

/// Returns one line per replica.
pub fn place(reply: &PlaceReply) -> String {
    let columns = [
        ("group", Side::Right),
        ("node", Side::Right),
        ("node is", Side::Left),
        ("key is", Side::Left),
        ("file", Side::Left),
        ("offset", Side::Right),
        ("length", Side::Right),
        ("notes", Side::Left),
    ];
    let number = |number: Option<u64>| number.map(count).unwrap_or_default();
    let rows = reply.replicas.iter().map(|replica| {
        let answers = (reply.answers == Some(replica.node)).then(|| "answers now".to_owned());
        let excluded = replica.excluded.then(|| "left out by the push".to_owned());
        let error = replica.error.as_ref().map(|error| error.message().to_owned());
        vec![
            replica.group.to_string(),
            replica.node.to_string(),
            replica.node_state.clone(),
            replica.state.to_lowercase(),
            replica.file.clone().unwrap_or_default(),
            number(replica.offset),
            number(replica.length),
            [answers, excluded, error].into_iter().flatten().collect::<Vec<_>>().join("; "),
        ]
    });
    let PlaceReply { store, key, version, partition, .. } = reply;
    format!("store {store}, version {version}: {key} is in partition {partition}\n{}", table(&columns, rows))
}

/// Returns one line per node and component, then the components of the object store, then the conclusion.
pub fn verify(reply: &VerifyReply) -> String {
    let columns = [
        ("group", Side::Right),
        ("node", Side::Right),
        ("component", Side::Left),
        ("state", Side::Left),
        ("files", Side::Right),
        ("read", Side::Right),
        ("notes", Side::Left),
    ];
    let mut rows = Vec::new();
    for node in &reply.nodes {
        let names = [node.group.to_string(), node.node.to_string()];
        verified(&names, node.state, node.error.as_ref(), &node.components, &mut rows);
    }
    let copy = &reply.object_store;
    let names = ["".to_owned(), "objects".to_owned()];
    verified(&names, copy.state, copy.error.as_ref(), &copy.components, &mut rows);
    let VerifyReply { store, version, ok, deep, .. } = reply;
    let how = if *deep { "every byte" } else { "manifests, sizes and the ends of files" };
    let whole = reply.nodes.iter().all(|node| node.state == "ok");
    let end = match (ok, whole, copy.state) {
        (true, ..) => "every replica and the object store's copy are whole",
        (false, false, "ok") => "not every replica is whole; the object store's copy is",
        (false, true, "unreachable") => {
            "every replica is whole; the object store's copy could not be looked at"
        }
        (false, true, _) => "every replica is whole, but the object store's copy is not",
        (false, false, "unreachable") => {
            "not every replica is whole, and the object store's copy could not be looked at"
        }
        (false, false, _) => "neither every replica nor the object store's copy is whole",
    };
    format!("{}store {store}, version {version}: {end} ({how} compared)\n", table(&columns, rows))
}

/// Adds the rows of one node, or of the object store.
fn verified(
    names: &[String; 2],
    state: &str,
    error: Option<&ErrorReport>,
    components: &[ComponentReply],
    rows: &mut Vec<Vec<String>>,
) {
    if let Some(error) = error {
        let cells = ["", state, "", "", error.message()].map(str::to_owned);
        rows.push([&names[..], &cells].concat());
    }
    for component in components {
        let shown = component.damages.iter().take(DAMAGES_SHOWN);
        let mut notes: Vec<String> =
            shown.map(|damage| format!("{}: {}", damage.file, damage.fault)).collect();
        let more = component.damages.len().saturating_sub(DAMAGES_SHOWN);
        notes.extend((0 < more).then(|| format!("{more} more")));
        notes.extend(component.location.clone().filter(|_| component.state != "ok"));
        let cells = [
            component.component.clone(),
            component.state.to_owned(),
            count(component.files),
            bytes(component.bytes),
            notes.join("; "),
        ];
        rows.push([&names[..], &cells].concat());
    }
}

/// Returns a line about what was written, and where.
pub fn export(reply: &ExportReply) -> String {
    let ExportReply { store, version, records, bytes: size, out, .. } = reply;
    let (records, size) = (count(*records), bytes(*size));
    format!(
        "store {store}, version {version}: {records} records, {size} of keys and values, to {}\n",
        out.display()
    )
}
