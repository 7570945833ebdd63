//! Random histories. Partitions are built from pages that are read while the log grows, follow their logs through new
//! terms and lost histories, and are read at earlier points by long-lived readers.

use crate::dice::{Dice, runs};
use crate::twin::{Log, RowHistory, Rows, TYPES, Twin, edge, rows_at, types};
use kith_cache::adjacency::{
    Adjacency, AdjacencyOptions, AdjacencyReader, Build, BuildError, BuildNeed, Progress,
};
use kith_live::{AssociationKey, GraphTypes, TypeId};
use kith_schema::SourceError;
use kith_types::{Direction, LogPoint, PartitionCount, PartitionId, Timestamp};
use std::time::Duration;

const PARTITIONS: usize = 2;

struct Building {
    build: Build,
    /// A page that was read but not yet added.
    page: Option<Page>,
}

enum Page {
    Objects((LogPoint, Vec<u64>, bool)),
    Associations((LogPoint, Vec<AssociationKey>, bool)),
}

struct Run {
    dice: Dice,
    types: GraphTypes,
    kinds: Vec<TypeId>,
    graph: Adjacency,
    logs: Vec<Log>,
    builds: Vec<Option<Building>>,
    seen: Vec<RowHistory>,
    readers: Vec<(AdjacencyReader, Vec<Rows>)>,
    term: u64,
    now: Timestamp,
    /// Counts of events: installed builds, comparisons, refused points, old pages, lost histories and expired readers.
    counts: [u64; 6],
}

fn run(seed: u64) -> [u64; 6] {
    let mut dice = Dice(seed);
    let count = PartitionCount::new(PARTITIONS as u32).unwrap();
    let types = types(TYPES);
    let mut kinds: Vec<TypeId> = types.associations.keys().copied().collect();
    kinds.push(TypeId(99));
    let options =
        AdjacencyOptions { undo_for: Duration::from_secs(20), undo_max: dice.one_of(&[0, 8, 1_000]) };
    let graph = Adjacency::new(count, &types, options);
    let logs = count.iter().map(|partition| Log::new(partition, count)).collect();
    let builds = (0..PARTITIONS).map(|_| None).collect();
    let (seen, readers) = (vec![RowHistory::new(); PARTITIONS], Vec::new());
    let (now, counts) = (Timestamp::ZERO, [0; 6]);
    let mut run = Run { dice, types, kinds, graph, logs, builds, seen, readers, term: 1, now, counts };
    (0..30).for_each(|_| run.write());
    (0..PARTITIONS).for_each(|at| run.open(at));
    for _ in 0..150 {
        run.step();
    }
    run.counts
}

impl Run {
    fn at(&mut self) -> usize {
        self.dice.below(PARTITIONS as u64) as usize
    }

    fn step(&mut self) {
        let at = self.at();
        match self.dice.below(20) {
            0..6 => self.write(),
            6 => self.new_term(at),
            7..13 if self.builds[at].is_some() => self.build(at),
            7..14 => self.follow(at),
            14 if self.dice.once_in(3) => self.open(at),
            14 => self.now = self.now + Duration::from_secs(self.dice.below(30)),
            15 => self.read(),
            _ => self.read_again(),
        }
    }

    fn write(&mut self) {
        let at = self.at();
        self.logs[at].write(&mut self.dice, &self.kinds);
    }

    fn new_term(&mut self, at: usize) {
        self.term += 1 + self.dice.below(2);
        let end = self.logs[at].end.position.0;
        let lost = if self.dice.once_in(2) { self.dice.below(5) } else { 0 };
        self.logs[at].begin_term(self.term, end.saturating_sub(lost));
    }

    fn open(&mut self, at: usize) {
        let build = self.graph.open(PartitionId(at as u32));
        self.builds[at] = Some(Building { build, page: None });
    }

    /// Does what the build asks for, or something else that is allowed: reads pages before changes, or keeps pages for
    /// long.
    fn build(&mut self, at: usize) {
        for _ in 0..=self.dice.below(5) {
            let Some(mut building) = self.builds[at].take() else { return };
            match self.build_on(at, &mut building) {
                Ok(false) => self.builds[at] = Some(building),
                Ok(true) => self.install(at, building.build),
                Err(BuildError::HistoryLost) => {
                    self.counts[4] += 1;
                    self.open(at);
                }
                Err(BuildError::OldPage { .. }) => {
                    self.counts[3] += 1;
                    self.builds[at] = Some(building);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn build_on(&mut self, at: usize, building: &mut Building) -> Result<bool, BuildError> {
        let limit = 1 + self.dice.below(6) as usize;
        let log = &self.logs[at];
        if let Some(page) = building.page.take() {
            if self.dice.once_in(3) {
                building.land(page)?;
            } else {
                building.page = Some(page);
                // Applies changes that the build did not ask for.
                if let Some(applied) = building.build.applied() {
                    log.replay(&mut building.build, applied, limit)?;
                }
            }
            return Ok(false);
        }
        match (self.dice.below(6), building.build.next_page(), building.build.applied()) {
            (0, BuildNeed::Objects { after }, _) => {
                building.page = Some(Page::Objects(log.objects(after, limit)));
            }
            (0, BuildNeed::Associations { after }, _) => {
                building.page = Some(Page::Associations(log.associations(after, limit)));
            }
            (1, _, Some(applied)) => log.replay(&mut building.build, applied, limit)?,
            _ => return log.serve(&mut building.build, limit),
        }
        Ok(false)
    }

    fn install(&mut self, at: usize, build: Build) {
        self.graph.install(build).unwrap();
        let window = self.graph.window(PartitionId(at as u32)).unwrap();
        assert_eq!(window.from, window.to, "nothing before it can be undone");
        let rows = self.logs[at].ever[&window.to].clone();
        self.counts[0] += 1;
        self.seen[at] = RowHistory::from([(window.to, rows)]);
    }

    /// Applies some or all changes: in order, repeated, or with a gap.
    fn follow(&mut self, at: usize) {
        let partition = PartitionId(at as u32);
        let Some(window) = self.graph.window(partition) else { return };
        let log = self.logs[at].clone();
        let Some(changes) = log.after(window.to) else { return self.open(at) };
        if let Some((point, change)) = changes.get(1)
            && self.dice.once_in(4)
        {
            let got = self.graph.apply(partition, *point, change, self.now);
            assert_eq!(got, Some(Progress::Gap { after: window.to }));
        }
        let mut after = window.to;
        for (point, change) in changes.iter().take(1 + self.dice.below(6) as usize) {
            let got = match self.dice.once_in(2) {
                true => self.graph.apply(partition, *point, change, self.now),
                false => self.graph.apply_after(partition, (after, *point), change, self.now),
            };
            assert_eq!(got, Some(Progress::Applied));
            let rows = log.states[point.position.0 as usize - 1].clone();
            self.seen[at].insert(*point, rows);
            after = *point;
            if self.dice.once_in(4) {
                assert_eq!(self.graph.apply(partition, *point, change, self.now), Some(Progress::Known));
            }
        }
        if changes.is_empty() && after < log.end {
            assert_eq!(self.graph.begin_term(partition, log.end), Some(Progress::Applied));
            self.seen[at].insert(log.end, log.rows());
        }
    }

    /// Reads at the newest points, or at points that may be unavailable.
    fn read(&mut self) {
        let (mut points, mut rows, mut refused) = (Vec::new(), Vec::new(), false);
        for at in 0..PARTITIONS {
            let partition = PartitionId(at as u32);
            let Some(window) = self.graph.window(partition) else { return };
            let back = self.dice.below(12);
            let point = match self.dice.below(4) {
                0 => None,
                1 => Some(LogPoint::new(
                    1 + self.dice.below(self.term + 1),
                    window.to.position.0.saturating_sub(back) + self.dice.below(3),
                )),
                _ => self.seen[at].keys().rev().nth(back as usize).copied(),
            };
            let point_or_newest = point.unwrap_or(window.to);
            let known = rows_at(&self.seen[at], point_or_newest);
            let available = window.from <= point_or_newest && point_or_newest <= window.to;
            match known.filter(|_| available) {
                Some(known) => rows.push(known.clone()),
                None => refused = true,
            }
            points.push((partition, point));
        }
        match self.graph.reader(points.clone()) {
            Ok(reader) => {
                assert!(!refused, "{points:?} of {:?}", self.seen);
                self.compare(&reader, &rows).expect("the reader was just made");
                self.readers.push((reader, rows));
            }
            Err(SourceError::PositionUnavailable { .. }) => {
                assert!(refused, "{points:?}");
                self.counts[2] += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Checks that a reader sees the same state as long as it can read.
    fn read_again(&mut self) {
        if self.readers.is_empty() {
            return self.read();
        }
        let index = self.dice.below(self.readers.len() as u64) as usize;
        let (reader, rows) = self.readers.swap_remove(index);
        match self.compare(&reader, &rows) {
            Ok(()) => self.readers.push((reader, rows)),
            Err(SourceError::PositionUnavailable { at, from, .. }) => {
                assert!(at < from);
                self.counts[5] += 1;
            }
            Err(error) => panic!("{error}"),
        }
        self.readers.truncate(6);
    }

    fn compare(&mut self, reader: &AdjacencyReader, rows: &[Rows]) -> Result<(), SourceError> {
        self.counts[1] += 1;
        let names = ["friend", "follows", "followed_by", "likes", "liked_by", "seen", "hidden", "nothing"];
        let directions = [Direction::Out, Direction::In, Direction::Both];
        let edge = edge(self.dice.one_of(&names), self.dice.one_of(&directions));
        let count = self.graph.partition_count();
        let twin = Twin { types: &self.types, count, rows: rows.iter().collect() };
        twin.compare(reader, &edge)
    }
}

impl Building {
    /// Adds a page. It is read again if it is too old.
    fn land(&mut self, page: Page) -> Result<(), BuildError> {
        let applied = self.build.applied();
        let at = match &page {
            Page::Objects((at, ..)) | Page::Associations((at, ..)) => *at,
        };
        let landed = match &page {
            Page::Objects((at, ids, last)) => self.build.objects(*at, ids, *last),
            Page::Associations((at, keys, last)) => self.build.associations(*at, keys, *last),
        };
        assert_eq!(landed.is_err(), applied.is_some_and(|applied| at < applied), "{landed:?}");
        landed
    }
}

#[test]
fn every_list_is_that_of_the_twin_at_the_same_point() {
    let runs = runs(1_500);
    let mut all = [0; 6];
    for seed in 0..runs {
        let counts = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| panic!("seed {seed}"));
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(all.iter().all(|sum| runs <= 3 * sum), "all of it happens in most histories: {all:?}");
}

#[test]
fn equal_seeds_give_equal_histories() {
    assert_eq!(run(5), run(5));
}
