//! Checks that the rows of all partitions agree with each other.

use kith_database::Database;
use kith_live::{
    GraphTypes, ListKey, RowAnswer, RowQuery,
    testing::{Tables, faults_of},
};
use kith_types::{PartitionCount, PartitionId, partition_of_id};

/// A limit that is greater than the number of rows of a run.
const ALL: u32 = 100_000;

/// Access to the rows of a graph.
#[derive(Clone, Copy)]
pub struct Rows<'d> {
    pub database: &'d dyn Database,
    pub types: &'d GraphTypes,
    pub count: PartitionCount,
}

/// Checks that counts are the lengths of lists, that forward associations have their inverse, and that both directions agree
/// where no intent is open. Returns the rows of all partitions.
pub async fn check_directions(rows: Rows<'_>, ids: &[u64]) -> Vec<Tables> {
    let mut partitions = Vec::new();
    for partition in rows.count.iter() {
        partitions.push(tables(rows, partition, ids).await);
    }
    assert_eq!(faults_of(&partitions.iter().collect::<Vec<_>>(), rows.types), [""; 0]);
    partitions
}

/// Reads the rows of a partition, with the counts of all lists that have associations or belong to these ids.
async fn tables(rows: Rows<'_>, partition: PartitionId, ids: &[u64]) -> Tables {
    let database = rows.database;
    let objects = database.scan_objects(partition, None, ALL).await.expect("it can be read").objects;
    let associations = database.scan_associations(partition, None, ALL).await.expect("it can be read");
    let mut tables = Tables::default();
    tables.objects.extend(objects.into_iter().map(|object| (object.id, object)));
    for (list, association) in associations.associations {
        tables.associations.insert(list.to(association.id2), association);
    }
    let named = |id1| rows.types.associations.keys().map(move |kind| ListKey { id1, kind: *kind });
    let mut lists: Vec<ListKey> = tables.associations.keys().map(|key| key.list).collect();
    let here = ids.iter().copied().filter(|id| partition_of_id(*id, rows.count) == partition);
    lists.extend(here.flat_map(named));
    let mut queries: Vec<RowQuery> = lists.iter().map(|list| RowQuery::Count(*list)).collect();
    queries.push(RowQuery::Intents);
    let mut answers = database.read(partition, queries).await.expect("it can be read").answers;
    if let Some(RowAnswer::Intents(intents)) = answers.pop() {
        tables.intents.extend(intents.into_iter().map(|intent| (intent.stamp, intent)));
    }
    for (list, count) in lists.into_iter().zip(answers) {
        if let RowAnswer::Count(count @ 1..) = count {
            tables.counts.insert(list, count);
        }
    }
    tables
}
