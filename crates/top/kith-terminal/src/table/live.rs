//! Objects and associations, as text for people.

use super::{Side, table, time as date};
use crate::reply::{Association, Associations, Object};
use kith_query::{Operand, line::Operation};

/// Returns one row per object that exists, and one line per id without an object.
pub fn objects(operation: &Operation, objects: &[Option<Object>]) -> String {
    let ids = match operation.operand() {
        Operand::Objects { ids, .. } => ids,
        _ => Vec::new(),
    };
    let (mut rows, mut absent) = (Vec::new(), String::new());
    for (id, object) in ids.iter().zip(objects) {
        match object {
            Some(Object { kind, version, data, .. }) => {
                rows.push(vec![id.to_string(), kind.clone(), version.to_string(), data.get().to_owned()]);
            }
            None => absent.push_str(&format!("there is no object {id}\n")),
        }
    }
    let columns = [("id", Side::Right), ("type", Side::Left), ("version", Side::Right), ("data", Side::Left)];
    let found = if rows.is_empty() { String::new() } else { table(&columns, rows) };
    found + &absent
}

/// Returns one row per association, and the flag for the next page.
pub fn associations(operation: &Operation, Associations { out, more }: &Associations) -> String {
    let Some(last) = out.last() else { return "no associations\n".to_owned() };
    let row = |Association { id2, time, data, version }: &Association| {
        let cells = [id2.to_string(), date(*time)].into_iter();
        let cells = cells.chain(version.iter().map(u64::to_string));
        cells.chain(data.iter().map(|data| data.get().to_owned())).collect()
    };
    let mut columns = vec![("id2", Side::Right), ("time", Side::Right)];
    columns.extend(last.version.map(|_| ("version", Side::Right)));
    columns.extend(last.data.as_ref().map(|_| ("data", Side::Left)));
    let text = table(&columns, out.iter().map(row));
    match (more, operation) {
        (Some(true), Operation::AssocRange(_)) => {
            text + &format!("there are more: --after {},{}\n", last.time, last.id2)
        }
        (Some(true), _) => text + "there are more\n",
        _ => text,
    }
}
