//! Keeps the order of those lines of `kith run` that name a common id, however many lines are in flight. A line waits for
//! earlier writes to an id that it names; a write also waits for earlier reads. Reads see the writes that they waited for.

use kith_live::{Ticket, VISIBLE_AFTER};
use kith_query::line::{GREMLIN, Line};
use memchr::memmem::Finder;
use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
    time::Instant,
};
use tokio::sync::watch;

/// The state of a line: `None` while it runs; then the tickets of its write and of the lines that it waited for, merged by
/// graph. The ticket of the write alone is not enough, because it need not name the partitions that earlier writes to its
/// ids changed.
type Ended = Option<Vec<Ticket>>;

/// The fewest remembered ids at which those whose lines ended long ago are removed.
const SWEEP_AT: usize = 4_096;

/// The lines in flight, by the ids that they name.
#[derive(Debug, Default)]
pub struct Order {
    ids: HashMap<(String, u64), Lines>,
    sweep_at: usize,
}

/// The lines that name one id.
#[derive(Debug)]
struct Lines {
    write: Option<watch::Receiver<Ended>>,
    /// The reads since that write.
    reads: Vec<watch::Receiver<Ended>>,
    named: Instant,
}

/// The place of one line in the order.
#[derive(Debug)]
pub struct Turn {
    before: Vec<watch::Receiver<Ended>>,
    /// The merged tickets of the writes that the line has waited for.
    tickets: Vec<Ticket>,
    ended: watch::Sender<Ended>,
}

/// Parts of the names of all writes, and of the steps of traversals that change graphs; and the beginning of an escape, with
/// which JSON may write any letter of them. A line that contains none of these is not a write.
const WRITES: [&str; 10] = [
    "_add\"",
    "_update\"",
    "_delete\"",
    "_change_type\"",
    "addV",
    "addE",
    "property",
    "drop",
    "merge",
    "\\u",
];

/// Lines may be long, and all of them are searched.
static SEARCHES: LazyLock<[Finder<'static>; 10]> = LazyLock::new(|| WRITES.map(Finder::new));

/// Whether a line may be a write. It is called before the line is parsed: until the first write, lines need no order.
pub fn may_write(line: &[u8]) -> bool {
    SEARCHES.iter().any(|search| search.find(line).is_some())
}

impl Order {
    /// Returns the turn of a line about a live graph, or about a graph that may be one; `None` for other lines. Lines must
    /// be passed in their order.
    pub fn turn_of(&mut self, line: &Line) -> Option<Turn> {
        match line {
            Line::Write(write) => Some(self.turn(&write.options.graph, &write.operation.ids(), true)),
            Line::Graph(question) => {
                let ids = question.operation.ids();
                Some(self.turn(&question.options.graph, &ids, false))
            }
            // A traversal may concern any id, so those of a graph keep their order among themselves.
            Line::Gremlin(line) => {
                let graph = format!("{}\0{GREMLIN}", line.fields.graph);
                Some(self.turn(&graph, &[0], line.fields.query().is_ok_and(|query| query.writes)))
            }
            Line::Batch(_) | Line::Compute(_) | Line::Aggregate(_) => None,
        }
    }

    /// Returns the turn of a line that names these ids of a graph.
    fn turn(&mut self, graph: &str, ids: &[u64], writes: bool) -> Turn {
        let (ended, end) = watch::channel(None);
        let (mut before, now) = (Vec::new(), Instant::now());
        // Visit each id once: a line must not wait for itself.
        for id in ids.iter().copied().collect::<BTreeSet<u64>>() {
            let lines = self.ids.entry((graph.to_owned(), id)).or_insert_with(|| Lines {
                write: None,
                reads: Vec::new(),
                named: now,
            });
            lines.named = now;
            before.extend(lines.write.clone());
            if writes {
                before.append(&mut lines.reads);
                lines.write = Some(end.clone());
            } else {
                lines.reads.retain(|read| read.borrow().is_none());
                lines.reads.push(end.clone());
            }
        }
        self.sweep(now);
        Turn { before, tickets: Vec::new(), ended }
    }

    /// Forgets ids whose lines ended long ago.
    fn sweep(&mut self, now: Instant) {
        if self.ids.len() < self.sweep_at.max(SWEEP_AT) {
            return;
        }
        let runs = |line: &watch::Receiver<Ended>| line.borrow().is_none();
        self.ids.retain(|_, lines| {
            let is_old = VISIBLE_AFTER < now.saturating_duration_since(lines.named);
            !is_old || lines.write.iter().chain(&lines.reads).any(runs)
        });
        self.sweep_at = 2 * self.ids.len();
    }
}

impl Turn {
    /// Waits until the lines before this one have ended. Returns the tickets of the writes among them and of those that they
    /// waited for, merged by graph.
    pub async fn wait(&mut self) -> Vec<Ticket> {
        for mut line in self.before.drain(..) {
            // A line that was dropped before it ended has no tickets.
            let Ok(ended) = line.wait_for(Option::is_some).await else { continue };
            ended.iter().flatten().for_each(|ticket| merge(&mut self.tickets, ticket));
        }
        self.tickets.clone()
    }

    /// Lets the lines that wait for a write continue. `ticket` is the ticket of the write, if it has one.
    pub fn end_write(mut self, ticket: Option<&Ticket>) {
        ticket.into_iter().for_each(|ticket| merge(&mut self.tickets, ticket));
        let _ = self.ended.send(Some(self.tickets));
    }

    /// Lets the lines that wait for a read continue.
    pub fn end_read(self) {
        let _ = self.ended.send(Some(Vec::new()));
    }
}

fn merge(tickets: &mut Vec<Ticket>, ticket: &Ticket) {
    match tickets.iter_mut().find(|known| known.graph == ticket.graph) {
        Some(known) => known.merge(ticket),
        None => tickets.push(ticket.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use kith_types::{LogPoint, PartitionId};

    fn ticket(position: u64) -> Ticket {
        let mut ticket = Ticket::new(7);
        ticket.require(PartitionId(1), LogPoint::new(1, position));
        ticket
    }

    /// Returns the line's tickets if it may begin now.
    fn begins(turn: &mut Turn) -> Option<Vec<Ticket>> {
        turn.wait().now_or_never()
    }

    #[test]
    fn a_read_waits_for_the_write_before_it_and_shows_it() {
        let mut order = Order::default();
        let mut write = order.turn("g", &[1, 2], true);
        let mut read = order.turn("g", &[2], false);
        assert_eq!(begins(&mut write), Some(vec![]));
        let waiting = read.before[0].clone();
        assert!(waiting.borrow().is_none());
        write.end_write(Some(&ticket(5)));
        assert_eq!(begins(&mut read), Some(vec![ticket(5)]));
    }

    #[test]
    fn a_read_shows_all_writes_before_it_also_if_the_last_one_concerns_another_partition() {
        let mut order = Order::default();
        let mut elsewhere = Ticket::new(7);
        elsewhere.require(PartitionId(2), LogPoint::new(1, 3));
        for (ids, ticket) in [([1, 2], Some(&ticket(5))), ([1, 3], Some(&elsewhere)), ([1, 4], None)] {
            let mut write = order.turn("g", &ids, true);
            assert!(begins(&mut write).is_some());
            write.end_write(ticket);
        }
        elsewhere.merge(&ticket(5));
        assert_eq!(begins(&mut order.turn("g", &[1], false)), Some(vec![elsewhere]));
    }

    #[test]
    fn a_write_waits_for_reads_and_writes_before_it_and_reads_do_not_wait_for_reads() {
        let mut order = Order::default();
        let (mut one, mut two) = (order.turn("g", &[1], false), order.turn("g", &[1], false));
        assert_eq!((begins(&mut one), begins(&mut two)), (Some(vec![]), Some(vec![])));
        let write = order.turn("g", &[1], true);
        assert_eq!(write.before.len(), 2);
        let next = order.turn("g", &[1], true);
        assert_eq!(next.before.len(), 1, "the write before has waited for the reads");
    }

    #[test]
    fn other_ids_and_other_graphs_do_not_wait() {
        let mut order = Order::default();
        let _write = order.turn("g", &[1], true);
        assert_eq!(begins(&mut order.turn("g", &[2], true)), Some(vec![]));
        assert_eq!(begins(&mut order.turn("h", &[1], true)), Some(vec![]));
        assert_eq!(begins(&mut order.turn("g", &[], true)), Some(vec![]));
    }

    #[test]
    fn a_line_that_names_an_id_twice_does_not_wait_for_itself() {
        let mut order = Order::default();
        for writes in [false, true] {
            let mut twice = order.turn("g", &[1, 1], writes);
            assert_eq!(begins(&mut twice), Some(vec![]));
            twice.end_write(None);
        }
        assert_eq!(begins(&mut order.turn("g", &[1], false)), Some(vec![]));
    }

    #[test]
    fn traversals_of_a_graph_keep_their_order_once_one_of_them_writes() {
        let turn = |order: &mut Order, gremlin: &str| {
            let line = format!(r#"{{"op":"gremlin","graph":"g","gremlin":"{gremlin}"}}"#);
            assert_eq!(may_write(line.as_bytes()), gremlin.contains("addV"));
            order.turn_of(&kith_query::line::parse(&line).expect("a line")).expect("a turn")
        };
        let mut order = Order::default();
        let (mut one, mut two) = (turn(&mut order, "g.V()"), turn(&mut order, "g.V()"));
        assert!(begins(&mut one).is_some() && begins(&mut two).is_some());
        let mut write = turn(&mut order, "g.addV('x')");
        let mut read = turn(&mut order, "g.V()");
        assert!(begins(&mut write).is_none());
        one.end_read();
        two.end_read();
        write.end_read();
        assert!(begins(&mut read).is_some());
    }

    #[test]
    fn a_write_is_noticed_however_json_spells_it() {
        for line in [r#"{"op":"object_add","graph":"g"}"#, r#"{"op":"object\u005fadd","graph":"g"}"#] {
            assert!(may_write(line.as_bytes()), "{line}");
        }
        assert!(!may_write(br#"{"op":"object_get","graph":"g","id":1}"#));
    }

    #[test]
    fn a_line_that_never_ends_does_not_hold_up_the_others() {
        let mut order = Order::default();
        drop(order.turn("g", &[1], true));
        assert_eq!(begins(&mut order.turn("g", &[1], true)), Some(vec![]));
    }
}
