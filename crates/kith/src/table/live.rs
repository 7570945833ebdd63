//! Objects and associations for people.

use super::{Side, table};
use crate::reply::{Association, Associations, Object};
use kith_lines::Operation;
use kith_ops::Operand;

/// One row per object that was asked for.
pub fn objects(operation: &Operation, objects: &[Option<Object>]) -> String {
    let ids = match operation.operand() {
        Operand::Objects { ids, .. } => ids,
        _ => Vec::new(),
    };
    let rows = ids.iter().zip(objects).map(|(id, object)| match object {
        Some(Object { kind, version, data, .. }) => {
            vec![id.to_string(), kind.clone(), version.to_string(), data.get().to_owned()]
        }
        None => vec![id.to_string(), "there is none".to_owned(), String::new(), String::new()],
    });
    let columns = [("id", Side::Right), ("type", Side::Left), ("version", Side::Right), ("data", Side::Left)];
    table(&columns, rows)
}

/// One row per association, and how to get the next page.
pub fn associations(operation: &Operation, Associations { out, more }: &Associations) -> String {
    let Some(last) = out.last() else { return "no associations\n".to_owned() };
    let has_data = last.data.is_some();
    let row = |Association { id2, time, data }: &Association| {
        let cells = [id2.to_string(), time.to_string()].into_iter();
        cells.chain(data.iter().map(|data| data.get().to_owned())).collect()
    };
    let columns = [("id2", Side::Right), ("time", Side::Right), ("data", Side::Left)];
    let text = table(&columns[..if has_data { 3 } else { 2 }], out.iter().map(row));
    match (more, operation) {
        (Some(true), Operation::AssocRange(_)) => {
            text + &format!("there are more: --after {},{}\n", last.time, last.id2)
        }
        (Some(true), _) => text + "there are more\n",
        _ => text,
    }
}
