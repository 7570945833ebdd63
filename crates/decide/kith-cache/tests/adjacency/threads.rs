//! Readers and a writer run at the same time. The state that a reader sees does not change.

use crate::dice::Dice;
use crate::twin::{Log, RowHistory, Rows, TYPES, Twin, edge, types};
use kith_cache::adjacency::{Adjacency, AdjacencyOptions, Progress};
use kith_types::{Direction, PartitionCount, PartitionId, Timestamp};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn readers_see_one_point_while_another_thread_writes() {
    let (types, count) = (types(TYPES), PartitionCount::new(2).unwrap());
    let kinds: Vec<_> = types.associations.keys().copied().collect();
    let graph = Adjacency::new(count, &types, AdjacencyOptions::default());
    let mut logs: Vec<Log> = count.iter().map(|partition| Log::new(partition, count)).collect();
    let mut dice = Dice(1);
    for (log, partition) in logs.iter_mut().zip(count.iter()) {
        let mut build = graph.open(partition);
        while !log.serve(&mut build, 100).unwrap() {}
        graph.install(build).unwrap();
        (0..3_000).for_each(|_| log.write(&mut dice, &kinds));
    }
    let seen: Vec<RowHistory> = logs.iter().map(|log| log.ever.clone()).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for seed in 0..3 {
            let (graph, types, seen, over) = (&graph, &types, &seen, &over);
            threads.spawn(move || {
                let mut dice = Dice(seed);
                while !over.load(Ordering::Relaxed) {
                    let reader = graph.reader(count.iter().map(|partition| (partition, None))).unwrap();
                    let points = reader.points();
                    let rows: Vec<&Rows> =
                        count.iter().map(|partition| &seen[partition.index()][&points[&partition]]).collect();
                    let twin = Twin { types, count, rows };
                    let names = ["friend", "follows", "seen"];
                    for _ in 0..3 {
                        let edge = edge(dice.one_of(&names), Direction::Out);
                        twin.compare(&reader, &edge).unwrap();
                    }
                }
            });
        }
        for index in 0..3_000 {
            for (partition, log) in logs.iter().enumerate() {
                let (point, change) = &log.entries[index];
                let partition = PartitionId(partition as u32);
                let applied = graph.apply(partition, *point, change, Timestamp::ZERO);
                assert_eq!(applied, Some(Progress::Applied));
            }
            if index % 10 == 0 {
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}
