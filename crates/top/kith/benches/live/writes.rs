//! `assoc_add` against the same transaction sent to MariaDB directly, one at a time and with many in flight.

use super::{
    direct::{Direct, Rows},
    site::{Association, Site, median, ratios, timed},
};
use crate::rig::{
    self,
    cpu::{self, Parts},
};
use kith_database::testing::MariaDb;
use kith_types::PartitionCount;
use rand::{RngExt, SeedableRng, rngs::StdRng};

const SHAPE: [&str; 6] = ["--groups", "1", "--nodes", "3", "--partitions", "24"];
const PARTITIONS: u32 = 24;
const IN_FLIGHT: usize = 32;
/// The number of consecutive writes of one side, with many in flight.
const BLOCK: usize = 2_000;
/// The number of objects whose lists grow.
const OBJECTS: u64 = 20_000;
/// The number of writes to each side before anything is measured.
const WARM: usize = 500;

/// A system that is measured.
enum Side<'a> {
    Kith(&'a Site, &'static str),
    Direct(&'a Direct, Rows),
}

pub async fn run() {
    let server = MariaDb::start_to_be_killed().await;
    let partitions = PartitionCount::new(PARTITIONS).expect("the count is not zero");
    let direct = server.address(&server.database().await);
    let direct = Direct::start(server.port(), &direct, partitions, IN_FLIGHT).await;
    let storage = server.address(&server.database().await);
    let mut on_mariadb = Site::start(&SHAPE, Some(&storage)).await;
    on_mariadb.parts.push(("MariaDB", vec![server.pid()]));
    let embedded = Site::start(&SHAPE, None).await;
    let mariadb: Parts = vec![("client", vec![std::process::id()]), ("MariaDB", vec![server.pid()])];
    let sides = [
        ("MariaDB, the same transaction", Side::Direct(&direct, Rows::Log), &mariadb),
        ("MariaDB, association and count alone", Side::Direct(&direct, Rows::NoLog), &mariadb),
        ("Kith on MariaDB", Side::Kith(&on_mariadb, "likes"), &on_mariadb.parts),
        ("Kith on its own database", Side::Kith(&embedded, "likes"), &embedded.parts),
        ("Kith on MariaDB, symmetric", Side::Kith(&on_mariadb, "friend"), &on_mariadb.parts),
        ("Kith on its own database, symmetric", Side::Kith(&embedded, "friend"), &embedded.parts),
    ];
    let mut random = Random { rng: StdRng::seed_from_u64(1), time: 1 };
    for (_, side, _) in &sides {
        side.add_all(random.associations(side, WARM)).await;
    }
    one_at_a_time(&sides, &mut random).await;
    many_in_flight(&sides, &mut random).await;
}

async fn one_at_a_time(sides: &[(&str, Side<'_>, &Parts)], random: &mut Random) {
    let writes = rig::setting("KITH_BENCH_WRITES", 400);
    let mut took = vec![Vec::new(); sides.len()];
    for turn in 0..writes {
        for at in 0..sides.len() {
            let at = (at + turn) % sides.len();
            let association = random.associations(&sides[at].1, 1).remove(0);
            took[at].push(timed(sides[at].1.add(&association)).await.0);
        }
    }
    println!(
        "assoc_add, one at a time, {writes} each; p50, its ratio to that of the first, and the median of the ratios of pairs"
    );
    for ((name, ..), took_it) in sides.iter().zip(&took) {
        println!(
            "  {name}: {:.0} us, {:.2}; pairs {}",
            median(took_it),
            median(took_it) / median(&took[0]),
            ratios(took_it, &took[0])
        );
    }
}

async fn many_in_flight(sides: &[(&str, Side<'_>, &Parts)], random: &mut Random) {
    let rounds = rig::setting("KITH_BENCH_ROUNDS", 7);
    let mut rates = vec![Vec::new(); sides.len()];
    let mut used = vec![Vec::new(); sides.len()];
    for round in 0..rounds {
        for at in 0..sides.len() {
            let at = (at + round) % sides.len();
            let (_, side, parts) = &sides[at];
            let associations = random.associations(side, BLOCK);
            let before = cpu::now(parts);
            rates[at].push(BLOCK as f64 / side.add_all(associations).await);
            used[at].push((before, cpu::now(parts)));
        }
    }
    println!(
        "assoc_add, {IN_FLIGHT} in flight, {rounds} rounds of {BLOCK}; writes/s, and the ratio to the first"
    );
    for (at, (name, _, parts)) in sides.iter().enumerate() {
        println!("  {name}: {:.0}/s, {}", median(&rates[at]), ratios(&rates[at], &rates[0]));
        println!("    CPU per write: {}", cpu::describe(parts, &cpu::sums(&used[at]), rounds * BLOCK));
    }
}

impl Side<'_> {
    async fn add(&self, association: &Association) {
        match self {
            Side::Kith(site, _) => site.add(association).await,
            Side::Direct(direct, rows) => direct.add(association, *rows).await,
        }
    }

    /// Adds associations, and returns the time that this took in seconds.
    async fn add_all(&self, associations: Vec<Association>) -> f64 {
        let took = match self {
            Side::Kith(site, _) => site.add_all(associations, IN_FLIGHT).await,
            Side::Direct(direct, rows) => direct.add_all(&associations, *rows).await,
        };
        took.as_secs_f64()
    }
}

/// Associations that do not exist yet.
struct Random {
    rng: StdRng,
    time: u64,
}

impl Random {
    fn associations(&mut self, side: &Side<'_>, count: usize) -> Vec<Association> {
        let kind = match side {
            Side::Kith(_, kind) => kind,
            Side::Direct(..) => "likes",
        };
        let associations = (0..count).map(|_| {
            self.time += 1;
            let id1 = self.rng.random_range(0..OBJECTS);
            // Every association has a different `id2`, so none exists yet.
            let id2 = OBJECTS + self.time;
            let data = (kind == "likes")
                .then(|| r#"{"note":"a few words, as a comment would have them"}"#.to_owned());
            Association { kind, id1, id2, time: self.time, data }
        });
        associations.collect()
    }
}
