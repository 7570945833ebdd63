//! Plays `testdata/scenarios/versions`: see `docs/testing.md`.

mod followers;
mod store;
mod words;

use kith_scenario::{Area, Command, Player, check};

/// Commands about the store itself come first, then those about the nodes and routers around it.
const LANGUAGE: &[(&str, &str)] = &[
    ("group GROUP: NODE[PARTITIONS] …", "a replica group that holds the store"),
    ("GROUP is taken out", "a group takes no reads"),
    ("GROUP serves again", "it does again"),
    ("as NAME, proven", "who gives the commands from now on, and whether they have shown who they are"),
    (
        "define keep N, records N, drop N, quota N, owner NAME",
        "what the store asks for: how many old versions are kept, the fewest records of a push, by how many per cent they may drop, bytes of all versions, and the owner",
    ),
    (
        "push PUSH, version N, missing N",
        "begins a push; its number is one more than the last unless said, and so many nodes may be left out",
    ),
    ("PUSH holds N records, bytes N, force", "what was built; the guards are checked, and nodes fetch it"),
    ("PUSH is ready on NODES", "they have fetched, verified and opened it"),
    ("PUSH fails on NODE", "its disk is full"),
    ("flip PUSH", "serves it"),
    ("load PUSH, records N", "a push from its beginning to its flip, without trouble"),
    ("abort PUSH", "its coordinator gives it up"),
    ("cancel PUSH", "somebody ends it; without a name, the one that runs"),
    ("the coordinator dies", "and with it what it knew of nodes that are ready"),
    ("recover PUSH", "another router takes the push back"),
    ("swap to VERSION, force", "serves another version"),
    ("roll back, to VERSION, force", "serves an older version, and blocks the current one"),
    ("hold VERSION", "keeps it whatever comes"),
    ("release VERSION", "gives it back to the clean-up"),
    ("block VERSION", "has it served by force only"),
    ("unblock VERSION", "takes that back"),
    ("NODE has repaired VERSION", "a node that was left out has the version now"),
    ("freeze", "refuses pushes from now on"),
    ("thaw", "accepts them again"),
    ("a rebalance runs", "the cluster changes its shape"),
    ("the rebalance ends", "it has done so"),
    ("versions", "all versions, and the push that runs"),
    ("history", "what was done, oldest first"),
    (
        "all fetch, alone",
        "nodes begin to fetch a version, from each other where they can; alone, all from the object store",
    ),
    ("NODE has fetched", "what it was told to"),
    ("NODE cannot fetch", "it fails for good"),
    (
        "NODE looks for VERSION, silent TIME",
        "where a node finds files that it lost; `silent`: the object store did not answer so long ago",
    ),
    ("PARTITION was damaged, silent NODES", "what came of it was; nodes that did not answer meanwhile"),
    ("the flip is revision N", "the metadata revision of the last change"),
    ("routers N hold leases", "which routers live"),
    ("router N serves revision N", "how far a router has followed"),
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
fn versions_are_as_told() {
    let area = Area { folder: "versions", package: "kith-versions", language: LANGUAGE };
    check(&area, Versions::default);
}
