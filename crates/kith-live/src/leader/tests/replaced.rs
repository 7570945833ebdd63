//! The database is replaced by an older copy of itself, and leaders go on with what they know.

use super::scenes::*;
use crate::Guards;
use crate::leader::Event;
use kith_types::PartitionId;

#[test]
fn a_leader_that_reads_an_older_copy_gives_up_its_term() {
    for (older_copies_noticed, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { older_copies_noticed, ..Guards::default() });
        let (one, _) = pairs(&world);
        let copy = world.twin.clone();
        world.submit(0, add(one, "likes", 1));
        world.run_all();
        world.twin.restore(&copy);
        world.submit(0, add(one, "likes", 2));
        world.run_all();
        assert_eq!(world.nodes[0].end(PartitionId(0)).is_none(), is_right);
    }
}

#[test]
fn an_idle_leader_gives_up_its_term_when_it_hears_that_the_database_was_replaced() {
    for (older_copies_noticed, is_right) in [(true, true), (false, false)] {
        let mut world = begun(Guards { older_copies_noticed, ..Guards::default() });
        let before = world.nodes[0].end(PartitionId(0)).unwrap();
        world.tell(0, Event::Replaced { partition: PartitionId(0), before });
        assert_eq!(world.nodes[0].end(PartitionId(0)).is_none(), is_right);
        // News of the same replacement do not end a term that began after it.
        world.elect(PartitionId(0), 0);
        world.run_all();
        world.tell(0, Event::Replaced { partition: PartitionId(0), before });
        assert!(world.nodes[0].end(PartitionId(0)).is_some());
    }
}
