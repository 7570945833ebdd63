//! The columns of edges and entities that a load changes.

use crate::failure::Failure;
use kith_build::LoadReport;
use kith_schema::Column;
use kith_types::ErrorCode;
use kith_wire::documents::{ComponentDocument, StoreDocument};

/// Prints how the columns of the loaded components differ from those that are served, and refuses a load that would drop
/// some unless that is allowed.
///
/// # Errors
/// `incompatible_schema`.
pub fn check(graph: Option<&StoreDocument>, report: &LoadReport, may_drop: bool) -> Result<(), Failure> {
    let served = graph.and_then(StoreDocument::current);
    let served = served.map(|version| version.components.as_slice()).unwrap_or_default();
    let mut lost = Vec::new();
    for (manifest, _) in &report.components {
        let name = &manifest.component;
        let Some(before) = served.iter().find(|component| component.name == *name) else { continue };
        let columns = manifest.graph().map(|graph| graph.columns.as_slice()).unwrap_or_default();
        for change in changes(before, columns) {
            eprintln!("{name}: {change}");
        }
        lost.extend(dropped(before, columns).map(|column| format!("{column:?} of {name}")));
    }
    refuse(&lost, may_drop)
}

/// Refuses before a build that may take hours.
///
/// # Errors
/// `incompatible_schema`.
pub fn check_before(served: &ComponentDocument, columns: &[Column], may_drop: bool) -> Result<(), Failure> {
    let name = &served.name;
    let lost: Vec<String> = dropped(served, columns).map(|column| format!("{column:?} of {name}")).collect();
    refuse(&lost, may_drop)
}

fn refuse(lost: &[String], may_drop: bool) -> Result<(), Failure> {
    if may_drop || lost.is_empty() {
        return Ok(());
    }
    let message = format!("the load would drop columns that are served now: {}", lost.join(", "));
    let help = "load them with --columns or --entity-columns, or drop them with --drop-columns";
    Err(Failure::new(ErrorCode::IncompatibleSchema, message, help))
}

fn dropped<'a>(served: &'a ComponentDocument, columns: &'a [Column]) -> impl Iterator<Item = &'a str> {
    let names = served.columns.iter().map(|column| column.name.as_str());
    names.filter(|name| columns.iter().all(|column| column.name != *name))
}

fn changes(served: &ComponentDocument, columns: &[Column]) -> Vec<String> {
    let mut changes = Vec::new();
    for column in columns {
        let kind = column.kind.name();
        match served.columns.iter().find(|before| before.name == column.name) {
            None => changes.push(format!("column {:?} ({kind}) is new", column.name)),
            Some(before) if before.kind != kind => {
                changes.push(format!("column {:?} was {} and is now {kind}", column.name, before.kind));
            }
            Some(_) => {}
        }
    }
    changes.extend(dropped(served, columns).map(|name| format!("column {name:?} is gone")));
    changes
}
