//! Processes that die at each step of a push, a swap and a rollback, under readers that do not pause: exactly one version
//! is served then, reads are right, and the push that is repeated succeeds.

use crate::support;
use kith_client::QueryError;
use kith_cluster::{FAIL_POINTS_VARIABLE, FailPoint};
use serde_json::Value;
use std::{fs, path::PathBuf};
use support::{
    cluster::{Cluster, kith, signal},
    stream::Stream,
    values::{UploadedVersion, built, push_built},
    words::{WORDS, assert_reads, current, judge, mget, read_on, rows, states},
};

const STORE: &str = "words";
const PEOPLE: u64 = 300;
/// More than the quota, which the nodes find out.
const TOO_MANY: u64 = 10_000;
const ROUTERS: usize = 2;
const NODES: usize = 2;

/// Who is killed at a point, and in what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    /// The router, in a push that is not written yet, or is.
    Push { flipped: bool },
    /// The router, in a push that a node cannot take.
    FailingPush,
    /// Another router, which takes back the push of one that was killed.
    Recovery,
    /// The router, in a swap or rollback that is not written yet, or is.
    Change { written: bool },
    /// A node that is pushed to: it is waited for.
    Node,
    /// A node that cleans up after it was started.
    CleanUp,
}

/// No point can be forgotten: this knows all of them.
fn killed(point: FailPoint) -> Killed {
    match point {
        FailPoint::PushBegun | FailPoint::PushPreparing | FailPoint::PushPrepared => {
            Killed::Push { flipped: false }
        }
        FailPoint::PushFlipped | FailPoint::PushCleaned => Killed::Push { flipped: true },
        FailPoint::PushFailed | FailPoint::PushGivenUp => Killed::FailingPush,
        FailPoint::RecoveryBegun | FailPoint::RecoveryWritten => Killed::Recovery,
        FailPoint::ChangeAsked => Killed::Change { written: false },
        FailPoint::ChangeWritten => Killed::Change { written: true },
        FailPoint::NodeFetching | FailPoint::NodeFetched | FailPoint::NodeOpened | FailPoint::NodeReady => {
            Killed::Node
        }
        FailPoint::NodeRetiring => Killed::CleanUp,
    }
}

fn points(of: impl Fn(Killed) -> bool) -> Vec<FailPoint> {
    let points: Vec<FailPoint> = FailPoint::ALL.into_iter().filter(|point| of(killed(*point))).collect();
    assert!(!points.is_empty());
    points
}

/// A cluster whose processes end at the fail points that are armed, and are started again.
struct World {
    cluster: Cluster,
    folder: tempfile::TempDir,
    /// The greatest version so far.
    last: u64,
    /// The last push.
    built: Option<UploadedVersion>,
}

impl World {
    /// Serves version 2, and keeps version 1.
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let points = folder.path().join("points");
        fs::create_dir(&points).expect("made");
        let data = folder.path().join("data").display().to_string();
        let shape = ["--processes", "--routers", "2", "--groups", "2", "--nodes", "1", "--data", &data];
        let env = [(FAIL_POINTS_VARIABLE.to_owned(), points.display().to_string())];
        let cluster = Cluster::start_in(&shape, &env);
        cluster.must(&["store", "create", STORE, "--key", "id", "--value", "text", "--quota", "512KiB"]);
        let mut world = Self { cluster, folder, last: 0, built: None };
        for _ in 0..2 {
            world.push(PEOPLE).expect("nobody dies");
        }
        world
    }

    fn file(&self, point: FailPoint) -> PathBuf {
        self.folder.path().join("points").join(point.name())
    }

    /// The next process that reaches the point ends there.
    fn arm(&self, point: FailPoint) {
        fs::write(self.file(point), "").expect("written");
    }

    /// Builds a version of so many rows.
    fn build(&mut self, people: u64) -> &UploadedVersion {
        self.last += 1;
        let version = self.last;
        self.built.insert(built(&self.cluster, STORE, WORDS, version, rows(STORE, people, version)))
    }

    /// Pushes a new version of so many rows.
    fn push(&mut self, people: u64) -> Result<(), QueryError> {
        self.build(people);
        push_built(&self.cluster, STORE, self.built.as_ref().expect("built just now"))
    }

    /// Pushes once more: the last version if that serves, which changes nothing then, else a new one.
    fn push_again(&mut self) {
        let before = states(&self.cluster, STORE);
        let serves = before.contains(&(self.last, "current".to_owned()));
        if !serves {
            self.build(PEOPLE);
        }
        let built = self.built.as_ref().expect("something was built");
        if let Err(error) = push_built(&self.cluster, STORE, built) {
            panic!("{error}: {}", error.help());
        }
        if serves {
            assert_eq!(states(&self.cluster, STORE), before, "it is the push that was");
        }
        assert_eq!(current(&self.cluster, STORE), self.last);
        assert_reads(&self.cluster, STORE, PEOPLE, self.last);
    }

    /// Waits until a process has ended at the point and all are there again.
    fn recover(&mut self, point: FailPoint) {
        let file = self.file(point);
        self.cluster.wait_until("a process has ended at the point", |_| !file.exists());
        self.cluster.wait_until("all processes are there again", |cluster| {
            let ready = cluster.ready();
            let routers = ready["routers"].as_array().expect("a list");
            let all_up = |addr: &str| {
                let status = kith(&["cluster", "status", "--router", addr, "-o", "json"]).output();
                let status = status.expect("kith runs");
                let answer: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
                let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
                nodes.iter().filter(|node| node["state"] == "up").count() == NODES
            };
            routers.len() == ROUTERS
                && routers.iter().all(|router| all_up(router["addr"].as_str().expect("an address")))
        });
    }

    /// Waits until no push is under way.
    fn settle(&mut self) {
        self.cluster.wait_until("the push is over", |cluster| {
            states(cluster, STORE).iter().all(|(_, state)| state != "fetching")
        });
    }

    fn readers(&self, arguments: &[&str]) -> Vec<Stream> {
        let single = (0..200).map(|turn| mget(STORE, [turn * 7 % PEOPLE].into_iter())).collect();
        let many = (0..10).map(|turn| mget(STORE, (0..200).map(move |key| (key + turn) % PEOPLE))).collect();
        let start = |requests| Stream::start_as(&self.cluster, arguments, requests, 1, judge);
        vec![start(single), start(many)]
    }
}

fn end(readers: Vec<Stream>) {
    let answers: Vec<usize> = readers.into_iter().map(Stream::end).collect();
    eprintln!("answers: {answers:?}");
}

#[test]
fn a_router_that_dies_at_any_step_of_a_push_leaves_one_version() {
    let mut world = World::start();
    let readers =
        [world.readers(&[]), world.readers(&["--direct"])].into_iter().flatten().collect::<Vec<_>>();
    for point in points(|killed| matches!(killed, Killed::Push { .. } | Killed::FailingPush)) {
        let before = current(&world.cluster, STORE);
        world.arm(point);
        let is_failing = killed(point) == Killed::FailingPush;
        world.push(if is_failing { TOO_MANY } else { PEOPLE }).expect_err("its router dies");
        world.recover(point);
        world.settle();
        let serves = if killed(point) == (Killed::Push { flipped: true }) { world.last } else { before };
        assert_eq!(current(&world.cluster, STORE), serves, "{point:?}");
        assert_reads(&world.cluster, STORE, PEOPLE, serves);
        world.push_again();
        read_on(&mut world.cluster, &readers);
    }
    end(readers);
}

/// Two routers die within seconds of each other: fast clients do not notice.
#[test]
fn a_router_that_dies_while_it_takes_a_push_back_leaves_one_version() {
    let mut world = World::start();
    let readers = world.readers(&["--direct"]);
    for point in points(|killed| killed == Killed::Recovery) {
        let before = current(&world.cluster, STORE);
        world.arm(point);
        world.arm(FailPoint::PushPrepared);
        world.push(PEOPLE).expect_err("its router dies");
        world.recover(FailPoint::PushPrepared);
        world.recover(point);
        world.settle();
        assert_eq!(current(&world.cluster, STORE), before, "{point:?}");
        world.push_again();
        read_on(&mut world.cluster, &readers);
    }
    end(readers);
}

#[test]
fn a_router_that_dies_in_a_swap_or_rollback_leaves_one_version() {
    let mut world = World::start();
    let readers =
        [world.readers(&[]), world.readers(&["--direct"])].into_iter().flatten().collect::<Vec<_>>();
    for point in points(|killed| matches!(killed, Killed::Change { .. })) {
        // Version 2 serves; there and back again.
        for (change, other) in
            [(&["rollback", STORE, "--to", "1"][..], 1), (&["swap", STORE, "2", "--force"][..], 2)]
        {
            let before = current(&world.cluster, STORE);
            assert_ne!(before, other);
            world.arm(point);
            let command = [&["store"], change].concat();
            let first = world.cluster.ready()["router"].as_str().expect("an address").to_owned();
            // It knows one router only: whether another is asked again is not what is tested.
            let output = kith(&[&command[..], &["--router", &first]].concat()).output().expect("kith runs");
            assert!(!output.status.success(), "its router dies");
            world.recover(point);
            let is_written = killed(point) == (Killed::Change { written: true });
            let serves = if is_written { other } else { before };
            assert_eq!(current(&world.cluster, STORE), serves, "{point:?}");
            assert_reads(&world.cluster, STORE, PEOPLE, serves);
            if !is_written {
                world.cluster.must(&command);
            }
            assert_eq!(current(&world.cluster, STORE), other);
            assert_reads(&world.cluster, STORE, PEOPLE, other);
            read_on(&mut world.cluster, &readers);
        }
    }
    world.push_again();
    end(readers);
}

#[test]
fn a_node_that_dies_at_any_step_of_a_push_is_waited_for() {
    let mut world = World::start();
    let readers =
        [world.readers(&[]), world.readers(&["--direct"])].into_iter().flatten().collect::<Vec<_>>();
    for point in points(|killed| killed == Killed::Node) {
        world.arm(point);
        world.push(PEOPLE).expect("the node comes back in time");
        world.recover(point);
        assert_eq!(current(&world.cluster, STORE), world.last, "{point:?}");
        assert_reads(&world.cluster, STORE, PEOPLE, world.last);
        read_on(&mut world.cluster, &readers);
    }
    for point in points(|killed| killed == Killed::CleanUp) {
        world.arm(point);
        let status: Value =
            serde_json::from_str(&world.cluster.must(&["cluster", "status", "-o", "json"])).expect("JSON");
        signal(status["nodes"][0]["pid"].as_u64().expect("a pid") as u32, "KILL");
        world.recover(point);
        let kept: Vec<u64> = states(&world.cluster, STORE).into_iter().map(|(version, _)| version).collect();
        let versions = world.folder.path().join("data/node-000/components").join(STORE).join("values");
        world.cluster.wait_until("what nobody needs is removed", |_| {
            let there = fs::read_dir(&versions).expect("it is there").flatten();
            let mut there = there.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
            there.all(|version| kept.contains(&version))
        });
        assert_reads(&world.cluster, STORE, PEOPLE, world.last);
        read_on(&mut world.cluster, &readers);
    }
    world.push_again();
    end(readers);
}
