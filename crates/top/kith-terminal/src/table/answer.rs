//! Answers as text for people.

use super::{Side, count, filled, plan, plural, screen_width, table, time, wrapped};
use crate::reply::Answer;
use kith_query::{Block, Cell, Column};

/// The number of ids of one set that are printed on a terminal; the remaining ones are only counted there. A pipe gets all.
const IDS_SHOWN: usize = 200;

/// Returns the answer, followed by the missing partitions and the profile.
pub fn render(answer: &Answer) -> String {
    render_for(answer, screen_width())
}

/// As [`render`], for a terminal of this width; for a pipe without a width.
pub fn render_for(answer: &Answer, screen: Option<usize>) -> String {
    let mut text: String = answer.reply.text().iter().map(|part| block(part, screen)).collect();
    if !answer.is_complete() {
        let missing: Vec<String> = answer.missing_partitions.iter().map(ToString::to_string).collect();
        text += &format!(
            "incomplete: {} did not answer: {}\n",
            plural(missing.len() as u64, "partition"),
            missing.join(", ")
        );
    }
    if let Some(profile) = &answer.profile {
        text += "\n";
        text += &plan::render_for(profile, screen);
    }
    text
}

fn block(block: &Block, screen: Option<usize>) -> String {
    match block {
        Block::Line(line) => format!("{line}\n"),
        Block::Count(number) => format!("{}\n", count(*number)),
        Block::Ids { title, ids } => id_set(title, ids, screen),
        Block::Table { columns, rows } => {
            let side = |column: &Column| if column.is_right { Side::Right } else { Side::Left };
            let columns: Vec<(&str, Side)> =
                columns.iter().map(|column| (column.name.as_str(), side(column))).collect();
            table(&columns, rows.iter().map(|row| row.iter().map(cell).collect()))
        }
    }
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Count(number) => count(*number),
        Cell::Time(ms) => time(*ms),
    }
}

fn id_set(what: &str, ids: &[u64], screen: Option<usize>) -> String {
    let shown = if screen.is_some() { IDS_SHOWN.min(ids.len()) } else { ids.len() };
    let mut text = format!("{what}: {}\n", count(ids.len() as u64));
    text += &filled(ids[..shown].iter().map(ToString::to_string), screen);
    if shown < ids.len() {
        let rest = count((ids.len() - shown) as u64);
        let note =
            format!("... and {rest} more: a pipe or -o json gets all, --limit and --after print pages");
        text += &wrapped(&note, screen);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_some_ids_and_a_pipe_gets_all() {
        let ids: Vec<u64> = (1_000..1_500).collect();
        let numbers = |text: &str| -> Vec<u64> {
            text.lines().skip(1).flat_map(|line| line.split(' ')).filter_map(|it| it.parse().ok()).collect()
        };
        let piped = id_set("ids", &ids, None);
        assert_eq!(numbers(&piped), ids);
        let shown = id_set("ids", &ids, Some(60));
        assert_eq!(numbers(&shown)[..IDS_SHOWN], ids[..IDS_SHOWN]);
        assert!(shown.contains("and 300 more") && shown.lines().all(|line| line.len() <= 60), "{shown}");
    }
}
