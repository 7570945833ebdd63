//! A client: does the steps of its program, and tells the model which answers it received.

use super::{
    model::{Content, KEYS_MAX, Label},
    program::{Dice, Fate, Hands, Op, ROUTERS, Step},
    push::Push,
    world::{Site, World, store_name},
};
use kith_client::{BatchKeys, QueryError, QueryOptions, Service};
use kith_operators::Record;
use kith_types::ErrorCode;
use kith_wire::v1::{self, store_request::Command as Ask};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

/// How long a read may take beside everything else.
const READ_DEADLINE: Duration = Duration::from_secs(30);
/// Errors that no operation may end with, whatever else goes on.
const NEVER: [&str; 5] = ["internal", "bad_request", "other_store", "damaged", "push_hangs"];

/// One of the clients.
pub struct Client {
    world: Arc<World>,
    dice: Dice,
}

/// The outcome of an operation: a word, or the code of an error.
pub type Outcome = Result<&'static str, String>;

pub fn code(error: &QueryError) -> String {
    error.code().name().to_owned()
}

/// Milliseconds since 1970: what versions are numbered by.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is right").as_millis() as u64
}

impl Client {
    pub fn new(world: Arc<World>) -> Self {
        Self { world, dice: Dice::new(0) }
    }

    /// Does the steps one after the other.
    pub async fn run(mut self, steps: Vec<Step>) {
        for step in steps {
            self.dice = Dice::new(step.seed);
            let outcome = self.step(&step).await;
            if outcome.as_ref().is_err_and(|code| code == "unknown_store") && self.dice.is_one_of(2) {
                let (site, router) = (&self.world.sites[step.cluster], self.dice.below(ROUTERS as u64));
                let created = site.create(router as usize, &store_name(step.store)).await;
                self.world
                    .model
                    .count("create, after a drop", &done(created).map_or_else(|code| code, str::to_owned));
            }
            let outcome = outcome.map_or_else(|code| code, str::to_owned);
            if NEVER.contains(&outcome.as_str()) {
                self.world.model.wrong(format!("{step:?} ended with {outcome}"));
            }
            self.world.model.count(step.op.name(), &outcome);
        }
    }

    async fn step(&mut self, step: &Step) -> Outcome {
        let world = Arc::clone(&self.world);
        let (site, store) = (&world.sites[step.cluster], store_name(step.store));
        match &step.op {
            Op::Push { hands, delta, from_peers, fate } => {
                let label = world.model.build(&site.of(&store), *delta);
                let push = Push { label, version: None, from_peers: *from_peers, fate: *fate };
                self.push(site, &store, *hands, push).await
            }
            Op::Race { hands, same_version, same_rows } => {
                self.race(site, &store, *hands, *same_version, *same_rows).await
            }
            Op::Repeat { at_once } => self.repeat(site, &store, *at_once).await,
            Op::Upload { whole } => self.abandon(site, &store, *whole).await,
            Op::Foreign => {
                let other = &world.sites[(step.cluster + 1) % world.sites.len()];
                self.push_foreign(site, other, &store).await
            }
            Op::Read => self.read(site, &store).await,
            Op::Create => done(site.create(self.router(), &store).await),
            Op::Freeze => self.freeze(site, &store).await,
            Op::KillRouter(index) => {
                site.kill("routers", *index);
                Ok("done")
            }
            Op::KillNode(index) => {
                site.kill("nodes", *index);
                Ok("done")
            }
            Op::Cut(bytes) => {
                world.server.cut_after(*bytes as i64);
                Ok("done")
            }
            op => self.change(site, &store, op).await,
        }
    }

    pub fn router(&mut self) -> usize {
        self.dice.below(ROUTERS as u64) as usize
    }

    pub fn number(&mut self) -> u64 {
        self.dice.number()
    }

    pub fn is_one_of(&mut self, of: u64) -> bool {
        self.dice.is_one_of(of)
    }

    pub fn world(&self) -> Arc<World> {
        Arc::clone(&self.world)
    }

    async fn race(
        &mut self,
        site: &Site,
        store: &str,
        hands: [Hands; 2],
        same_version: bool,
        same_rows: bool,
    ) -> Outcome {
        let world = self.world();
        let model = &world.model;
        let first = model.build(&site.of(store), false);
        let second = if same_rows { first } else { model.build(&site.of(store), false) };
        // Above all before, and not far above the clock.
        let version = same_version.then(|| now() + 50);
        let pause = Duration::from_millis(self.dice.below(300));
        let mut clients =
            [first, second].map(|_| Self { world: self.world(), dice: Dice::new(self.number()) });
        let [one, other] = &mut clients;
        let push = |label: Label| Push { label, version, from_peers: false, fate: Fate::Ends };
        let (one, other) = tokio::join!(one.push(site, store, hands[0], push(first)), async {
            tokio::time::sleep(pause).await;
            other.push(site, store, hands[1], push(second)).await
        });
        match (one, other) {
            (Ok(_), Ok(_)) => Ok("both served"),
            (Err(code), _) | (_, Err(code)) if NEVER.contains(&code.as_str()) => Err(code),
            (Ok(_), Err(_)) => Ok("the first served"),
            (Err(_), Ok(_)) => Ok("the second served"),
            (Err(code), Err(_)) => Err(code),
        }
    }

    async fn freeze(&mut self, site: &Site, store: &str) -> Outcome {
        let frozen = site.ask(self.router(), store, Ask::Freeze(v1::FreezeStore { thaw: false })).await;
        tokio::time::sleep(Duration::from_millis(self.dice.below(200))).await;
        let thaw = Ask::Freeze(v1::FreezeStore { thaw: true });
        let mut thawed = site.ask(self.router(), store, thaw.clone()).await;
        // Somebody must.
        for router in (0..ROUTERS).cycle().take(20) {
            match &thawed {
                Err(error) if error.code() != ErrorCode::UnknownStore => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    thawed = site.ask(router, store, thaw.clone()).await;
                }
                _ => break,
            }
        }
        done(frozen)
    }

    /// Changes a store in one step, of versions that it has.
    async fn change(&mut self, site: &Site, store: &str, op: &Op) -> Outcome {
        let router = self.router();
        let record = site.describe(router, store).await.map_err(|error| code(&error))?;
        let kept = record.versions.iter().filter(|version| version.state != "failed");
        let versions: Vec<u64> = kept.map(|version| version.version).collect();
        let chosen = |which: usize| match versions.len() {
            0 => Err("no version yet".to_owned()),
            count => Ok(versions[which % count]),
        };
        let command = match *op {
            Op::Swap { which, force } => Ask::Swap(v1::SwapStore { to: chosen(which)?, force }),
            Op::Rollback { which, force } => {
                let to = which.map(chosen).transpose()?;
                Ask::Rollback(v1::RollbackStore { to, force })
            }
            Op::Hold { which, release } => Ask::Hold(v1::HoldStore { version: chosen(which)?, release }),
            Op::Block { which, unblock } => Ask::Block(v1::BlockStore { version: chosen(which)?, unblock }),
            Op::Retain(retain) => Ask::Alter(v1::AlterStore { retain: Some(retain), ..Default::default() }),
            Op::Cancel => Ask::Cancel(v1::CancelPush { push: String::new() }),
            _ => Ask::Drop(v1::DropStore::default()),
        };
        done(site.ask(router, store, command).await)
    }

    /// Reads every key that a build may have; they must be of one build.
    async fn read(&mut self, site: &Site, store: &str) -> Outcome {
        let router = self.router();
        match read(site, router, store).await {
            Ok((version, content)) => {
                let model = &self.world.model;
                let name = site.of(store);
                let label = model.label(&name, version, "");
                if let Err(why) = model.check(&name, &content, label) {
                    model.wrong(format!("a read of version {version} of {name}: {why}"));
                }
                Ok("done")
            }
            Err(error) => Err(code(&error)),
        }
    }
}

/// The content that a store serves: its version and all of its rows.
pub async fn read(site: &Site, router: usize, store: &str) -> Result<(u64, Content), QueryError> {
    let keys = BatchKeys::Ids((0..KEYS_MAX).collect());
    let options = QueryOptions { deadline: Some(READ_DEADLINE), ..Default::default() };
    let answer = site.routers[router].multi_get(store, &keys, &options).await?;
    let found = answer.records.iter().zip(0..).filter_map(|(record, key)| match record {
        Record::Found(bytes) => Some((key, String::from_utf8_lossy(bytes).into_owned())),
        _ => None,
    });
    let content = found.collect();
    assert!(answer.is_complete(), "an answer without an error is whole");
    Ok((answer.served.first().map_or(0, |(_, version)| *version), content))
}

fn done<T>(result: Result<T, QueryError>) -> Outcome {
    result.map(|_| "done").map_err(|error| code(&error))
}
