//! The nodes that fetch and repair a version, and the routers that follow its flip.

use super::store::Store;
use super::words::version;
use kith_sim::scenario::{Command, duration, number, numbered};
use kith_topology::versions::{Donors, Fence, Origin, Pull, RouterProgress, Supply, origins};
use kith_types::{NodeId, PartitionId};
use std::collections::BTreeSet;

type Played = Result<Vec<String>, String>;

#[derive(Default)]
pub struct Followers {
    supply: Option<Supply>,
    /// The fetches that are running.
    pulling: Vec<Pull>,
    donors: Donors,
    fence: Option<Fence>,
}

impl Followers {
    /// Returns `None` if the command is about something else.
    pub fn play(&mut self, command: &Command<'_>, store: &Store) -> Option<Played> {
        Some(match command.words.as_slice() {
            ["all", "fetch"] => self.fetch(command, store),
            [node, "has", "fetched"] => self.fetched(node),
            [node, "cannot", "fetch"] => self.cannot_fetch(node),
            [node, "looks", "for", version] => self.look(node, version, command, store),
            [partition, "was", "damaged"] => self.damaged(partition, command),
            ["the", "flip", "is", "revision", revision] => number(revision).map(|revision| {
                self.fence = Some(Fence::new(revision));
                Vec::new()
            }),
            ["routers", routers @ .., "hold", "leases"] => self.live(routers),
            ["router", router, "serves", "revision", revision] => self.serve(router, revision),
            _ => return None,
        })
    }

    fn fetch(&mut self, command: &Command<'_>, store: &Store) -> Played {
        command.clauses_are(&["alone"])?;
        self.supply = Some(Supply::new(store.holders(), !command.flag("alone")?));
        self.start()
    }

    fn supply(&mut self) -> Result<&mut Supply, String> {
        self.supply.as_mut().ok_or_else(|| "nobody fetches anything".to_owned())
    }

    fn start(&mut self) -> Played {
        let pulls = self.supply()?.start();
        let mut lines: Vec<String> = pulls.iter().map(pull).collect();
        self.pulling.extend(pulls);
        if lines.is_empty() {
            let waits = if self.pulling.is_empty() {
                "nobody has anything left to fetch"
            } else {
                "nobody else can begin"
            };
            lines.push(waits.to_owned());
        }
        Ok(lines)
    }

    fn fetched(&mut self, node: &str) -> Played {
        let id = NodeId(numbered(node, "n")?);
        let index = self.pulling.iter().position(|pull| pull.node == id);
        let pull = self.pulling.remove(index.ok_or_else(|| format!("{node} fetches nothing"))?);
        let mut lines = Vec::new();
        if self.supply()?.done(&pull) {
            lines.push(format!("{node} has everything"));
        }
        lines.extend(self.start()?);
        Ok(lines)
    }

    fn cannot_fetch(&mut self, node: &str) -> Played {
        let id = NodeId(numbered(node, "n")?);
        self.pulling.retain(|pull| pull.node != id);
        self.supply()?.failed(id);
        self.start()
    }

    fn look(&mut self, node: &str, word: &str, command: &Command<'_>, store: &Store) -> Played {
        command.clauses_are(&["silent"])?;
        let silent_for = command.value("silent")?.map(duration).transpose()?;
        let entry = store.state.version(version(word)?).ok_or_else(|| format!("there is no {word}"))?;
        self.donors = Donors::new(&store.holders(), NodeId(numbered(node, "n")?), &entry.excluded);
        let name = |origin: &Origin| match origin {
            Origin::ObjectStoreBriefly => "the object store for a moment",
            Origin::ObjectStore => "the object store for as long as it takes",
            Origin::Peers => "peers",
        };
        let origins: Vec<&str> =
            origins(silent_for, !self.donors.peers().is_empty()).iter().map(name).collect();
        let mut lines = vec![format!("asks {}", origins.join(", then "))];
        lines.extend(self.peers());
        Ok(lines)
    }

    fn peers(&self) -> Vec<String> {
        let peers = self.donors.peers().iter();
        peers.map(|(peer, partitions)| format!("{peer} may be asked for {}", list(partitions))).collect()
    }

    fn damaged(&mut self, partition: &str, command: &Command<'_>) -> Played {
        command.clauses_are(&["silent"])?;
        let id = PartitionId(numbered(partition, "p")?);
        let silent = command.clause("silent").unwrap_or_default().iter();
        let silent =
            silent.map(|node| numbered(node, "n").map(NodeId)).collect::<Result<BTreeSet<_>, _>>()?;
        let is_left = self.donors.unfit(Some(id), &silent);
        let mut lines = self.peers();
        if !is_left {
            lines.push(format!("no peer is left for {partition}"));
        }
        Ok(lines)
    }

    fn fence(&mut self) -> Result<&mut Fence, String> {
        self.fence.as_mut().ok_or_else(|| "nothing was flipped".to_owned())
    }

    fn live(&mut self, routers: &[&str]) -> Played {
        let routers = routers.iter().map(|router| number(router).map(|id| id as u32));
        let routers = routers.collect::<Result<_, _>>()?;
        self.fence()?.live(&routers);
        self.waits()
    }

    fn serve(&mut self, router: &str, revision: &str) -> Played {
        let (router, revision) = (number(router)? as u32, number(revision)?);
        self.fence()?.serves(router, revision);
        self.waits()
    }

    fn waits(&mut self) -> Played {
        let fence = self.fence()?;
        let waiting = fence.waits_for();
        let mut lines = vec![match waiting.is_empty() {
            true => "the flip waits for nobody".to_owned(),
            false => format!("the flip waits for router {}", list(waiting)),
        }];
        let expired = fence.routers().iter().filter(|(_, followed)| **followed == RouterProgress::Expired);
        lines.extend(expired.map(|(router, _)| format!("router {router} knows itself that it is behind")));
        Ok(lines)
    }
}

fn pull(pull: &Pull) -> String {
    let copied: BTreeSet<PartitionId> = pull.peers.values().flatten().copied().collect();
    let rest: Vec<&PartitionId> = pull.partitions.difference(&copied).collect();
    let mut from: Vec<String> =
        pull.peers.iter().map(|(peer, partitions)| format!("{} from {peer}", list(partitions))).collect();
    if !rest.is_empty() {
        from.push(format!("{} from the object store", list(rest)));
    }
    format!("{} fetches {}", pull.node, from.join(", "))
}

fn list(things: impl IntoIterator<Item = impl ToString>) -> String {
    things.into_iter().map(|thing| thing.to_string()).collect::<Vec<_>>().join(" ")
}
