//! Plays `testdata/scenarios/versions`: see `docs/testing.md`.

mod followers;
mod store;
mod words;

use kith_sim::scenario::{Area, Command, Player, check};

/// The commands about the store itself come first, then those about the nodes and routers.
const LANGUAGE: &[(&str, &str)] = &[
    ("group GROUP: NODE[PARTITIONS] …", "a replica group that holds the store"),
    ("GROUP is taken out", "a group takes no reads"),
    ("GROUP serves again", "the group takes reads again"),
    ("as NAME, proven", "who gives the commands from now on, and whether they have shown who they are"),
    (
        "define keep N, records N, drop N, quota N, owner NAME",
        "the store's settings: how many old versions it keeps, the fewest records that a push may have, by how many per cent their number may drop, the bytes that all versions may take, and the owner",
    ),
    (
        "push PUSH, version N, missing N",
        "begins a push; by default, its version number is one more than the last; `missing`: how many nodes it may leave out",
    ),
    ("PUSH holds N records, bytes N, force", "says what was built; the guards check it, and nodes fetch it"),
    ("PUSH is ready on NODES", "these nodes have fetched, verified and opened the version"),
    ("PUSH fails on NODE", "the node's disk is full"),
    ("flip PUSH", "makes the version the served one"),
    ("load PUSH, records N", "a push from its beginning to its flip, without a failure"),
    ("abort PUSH", "the coordinator abandons the push"),
    ("cancel PUSH", "somebody ends the push; without a name, the one under way"),
    ("the coordinator dies", "the coordinator is gone, and with it the knowledge of which nodes are ready"),
    ("recover PUSH", "another router rolls the push back"),
    ("swap to VERSION, force", "serves another version"),
    ("roll back, to VERSION, force", "serves an older version, and blocks the current one"),
    ("hold VERSION", "keeps the version, however many follow it"),
    ("release VERSION", "ends the hold, so that the version may be removed"),
    ("block VERSION", "lets the version be served only by force"),
    ("unblock VERSION", "ends the block"),
    ("NODE has repaired VERSION", "a node that was left out has the version now"),
    ("freeze", "refuses pushes from now on"),
    ("thaw", "accepts them again"),
    ("a rebalance runs", "the cluster changes its shape"),
    ("the rebalance ends", "the cluster's shape no longer changes"),
    ("versions", "prints all versions, and the push under way"),
    ("history", "prints what was done, oldest first"),
    (
        "all fetch, alone",
        "nodes begin to fetch a version, from each other where they can; `alone`: all of them from the object store",
    ),
    ("NODE has fetched", "the node has fetched what it was asked to fetch"),
    ("NODE cannot fetch", "the node's fetch has failed for good"),
    (
        "NODE looks for VERSION, silent TIME",
        "prints where a node looks for files that it lost; `silent`: the object store has not answered for this long",
    ),
    (
        "PARTITION was damaged, silent NODES",
        "the copy of the partition that a node pulled was damaged; `silent`: nodes that did not answer meanwhile",
    ),
    ("the flip is revision N", "the metadata revision of the flip"),
    ("routers N hold leases", "which routers are alive"),
    ("router N serves revision N", "the metadata revision that a router has reached"),
];

#[derive(Default)]
struct Versions {
    store: store::Store,
    followers: followers::Followers,
}

impl Player for Versions {
    fn play(&mut self, command: &Command<'_>) -> Result<Vec<String>, String> {
        if let Some(played) = self.followers.play(command, &self.store) {
            return played;
        }
        self.store.play(command)?.ok_or_else(|| command.unknown(LANGUAGE))
    }
}

#[test]
fn versions_are_as_the_scripts_say() {
    let area = Area { folder: "versions", test: "-p kith-topology --test versions", language: LANGUAGE };
    check(&area, Versions::default);
}
