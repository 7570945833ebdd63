//! The result of an import, as JSON. The field names are a contract: see `docs/live-graph.md`.

use super::{
    flags::{ImportFlags, Target},
    flow::RefusedRows,
    window::Counts,
};
use crate::{
    publish::DroppedLines,
    table::{count, load::dropped, plural},
};
use kith_build::rows::graph::{FileReport, columns_taken};
use kith_live::Ticket;
use serde::Serialize;
use std::time::Duration;

/// The result of an import that ended, or of a dry run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportReply {
    pub graph: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub file: String,
    /// `objects` or `associations`.
    #[serde(skip)]
    pub what: &'static str,
    /// The columns that were read: the role of each, and its name in the file or its place.
    pub columns: Vec<(String, String)>,
    /// A time that is probably in another unit than milliseconds.
    pub warning: Option<String>,
    /// Lines of data in the file.
    pub rows: u64,
    /// Objects or associations that are new.
    pub added: u64,
    /// Objects or associations that existed, and now have the data of the file.
    pub existed: u64,
    /// Rows that an interrupted import had written before; the other counts include them.
    pub resumed: u64,
    /// Invalid lines that were dropped, by reason.
    pub dropped: Vec<DroppedLines>,
    /// Whether nothing was written.
    pub dry_run: bool,
    pub seconds: f64,
    /// A ticket with which reads show all rows at once; `None` after a dry run.
    pub ticket: Option<String>,
}

/// The outcome of the writes of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOutcome {
    pub counts: Counts,
    pub resumed: u64,
    pub refused: RefusedRows,
    pub ticket: Option<Ticket>,
}

impl ImportReply {
    /// Combines the report of the reader and the outcome of the writes.
    pub fn new(flags: &ImportFlags, report: &FileReport, done: &ImportOutcome, took: Duration) -> Self {
        let file = flags.file().display().to_string();
        let mut dropped: Vec<DroppedLines> = report
            .errors
            .by_reason
            .iter()
            .map(|(reason, count)| {
                let first = report.errors.first.iter().filter(|error| error.fault.reason() == *reason);
                let first_lines = first.map(|error| format!("{file}: {error}")).collect();
                DroppedLines { reason: (*reason).to_owned(), count: *count, first_lines }
            })
            .collect();
        if 0 < done.counts.refused {
            let first_lines = done.refused.first.iter().map(|line| format!("{file}: {line}")).collect();
            let reason = "refused by the cluster".to_owned();
            dropped.push(DroppedLines { reason, count: done.counts.refused, first_lines });
        }
        Self {
            graph: flags.graph.clone(),
            kind: flags.kind.clone(),
            file,
            what: match flags.target() {
                Target::Objects => "objects",
                Target::Associations => "associations",
            },
            columns: report.taken.clone(),
            warning: report.unlikely_time.clone(),
            rows: report.rows,
            added: done.counts.added,
            existed: done.counts.existed,
            resumed: done.resumed,
            dropped,
            dry_run: flags.dry_run,
            seconds: (took.as_secs_f64() * 1e3).round() / 1e3,
            ticket: done.ticket.as_ref().map(Ticket::to_string),
        }
    }

    /// Returns the dropped lines with their reasons, the columns that were read, then a one-line summary.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if !self.dropped.is_empty() {
            text += &dropped("dropped lines", &self.dropped);
            text += "\n";
        }
        text.extend(columns_taken(self.what, &self.columns).map(|taken| taken + "\n"));
        text.extend(self.warning.iter().map(|warning| format!("warning: {}: {warning}\n", self.file)));
        let (rows, seconds) = (plural(self.rows, "line"), self.seconds);
        if self.dry_run {
            return text + &format!("dry run: {rows} checked, nothing written, {seconds:.1} s\n");
        }
        let resumed = match self.resumed {
            0 => String::new(),
            resumed => format!(", {} of them before the interruption", count(resumed)),
        };
        let (graph, kind) = (&self.graph, &self.kind);
        let (added, existed) = (count(self.added), count(self.existed));
        let ticket = self.ticket.as_ref().map_or(String::new(), |ticket| format!("ticket {ticket}\n"));
        text + &format!(
            "graph {graph}: {rows} of type {kind:?}{resumed}: {added} added, {existed} existed, {seconds:.1} s\n{ticket}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_sums_up_what_was_done() {
        let reply = ImportReply {
            graph: "social".to_owned(),
            kind: "likes".to_owned(),
            file: "likes.csv".to_owned(),
            what: "associations",
            columns: [("id1", "from"), ("id2", "to"), ("time", "at")]
                .map(|(role, name)| (role.to_owned(), name.to_owned()))
                .to_vec(),
            warning: Some("at 1700000000 is 1970-01-20 in milliseconds".to_owned()),
            rows: 1_203,
            added: 1_000,
            existed: 202,
            resumed: 0,
            dropped: vec![DroppedLines {
                reason: "negative id".to_owned(),
                count: 1,
                first_lines: vec!["likes.csv: line 7: id1 is negative: \"-1,2,3\"".to_owned()],
            }],
            dry_run: false,
            seconds: 1.5,
            ticket: Some("AbC".to_owned()),
        };
        let expected = "\
dropped lines  why
            1  negative id
  likes.csv: line 7: id1 is negative: \"-1,2,3\"

associations: from → to; time = at
warning: likes.csv: at 1700000000 is 1970-01-20 in milliseconds
graph social: 1,203 lines of type \"likes\": 1,000 added, 202 existed, 1.5 s
ticket AbC
";
        assert_eq!(reply.text(), expected);
        let resumed = ImportReply { resumed: 700, dropped: Vec::new(), ..reply.clone() };
        assert!(resumed.text().contains("\"likes\", 700 of them before the interruption: 1,000 added"));
        let dry = ImportReply { dry_run: true, dropped: Vec::new(), warning: None, ..reply };
        let columns = "associations: from → to; time = at\n";
        assert_eq!(dry.text(), columns.to_owned() + "dry run: 1,203 lines checked, nothing written, 1.5 s\n");
    }
}
