//! The keys of requests.

use super::{KvBenchFlags, draw::Draw};
use crate::{failure::Failure, keys::read_keys};
use kith_client::{BatchKeys, StoreShape};
use kith_query::line::StoreKeys;
use kith_schema::KeyType;
use kith_types::ErrorCode;
use kith_wire::documents::TopologyDocument;
use rand::{SeedableRng, rngs::StdRng};
use std::sync::Arc;

/// The most keys of a file that are used; their indexes fit into 32 bits.
const LISTED_MAX: usize = 20_000_000;
/// The number of keys that are drawn before a run. A longer run repeats them, because drawing during the run would delay
/// due requests.
const DRAWN_MAX: usize = 4 << 20;

/// The keys that can be requested.
#[derive(Debug)]
pub enum KnownKeys {
    /// The ids below a number.
    Below(u64),
    /// The keys of a file.
    Listed(BatchKeys),
}

impl KnownKeys {
    /// The keys of a file, or the ids from 0 on, as many as the store has records.
    ///
    /// # Errors
    /// If the file cannot be read or contains keys that the store cannot have, or if there are no keys.
    pub fn of(flags: &KvBenchFlags, shape: StoreShape, topology: &TopologyDocument) -> anyhow::Result<Self> {
        let known = match &flags.keys_from {
            Some(file) => {
                let (store, key_encoding) = (flags.store.clone(), flags.key_encoding);
                let keys = read_keys(file, LISTED_MAX)?;
                KnownKeys::Listed(StoreKeys { store, keys, key_encoding }.of_type(shape.key)?)
            }
            None if shape.key != KeyType::Id => {
                let message = format!(
                    "the keys of store {:?} are {}: the benchmark cannot know which exist",
                    flags.store,
                    shape.key.name()
                );
                return Err(Failure::usage(message, "name some with --keys-from FILE").into());
            }
            None => KnownKeys::Below(records(topology, &flags.store)),
        };
        if known.count() == 0 {
            let help = "push some rows (`kith store push`), or name a file with keys (--keys-from)";
            return Err(Failure::new(ErrorCode::BadRequest, "there are no keys to ask for", help).into());
        }
        Ok(known)
    }

    /// The number of keys.
    pub fn count(&self) -> u64 {
        match self {
            KnownKeys::Below(end) => *end,
            KnownKeys::Listed(keys) => keys.len() as u64,
        }
    }

    fn request(&self, indices: &[u64]) -> BatchKeys {
        match self {
            KnownKeys::Below(_) => BatchKeys::Ids(indices.to_vec()),
            KnownKeys::Listed(BatchKeys::Ids(ids)) => {
                BatchKeys::Ids(indices.iter().map(|index| ids[*index as usize]).collect())
            }
            KnownKeys::Listed(BatchKeys::Bytes(listed)) => {
                let indices: Vec<u32> = indices.iter().map(|index| *index as u32).collect();
                BatchKeys::Bytes(listed.select(&indices))
            }
        }
    }
}

/// The number of records of the version that is served; 0 if none is.
fn records(topology: &TopologyDocument, store: &str) -> u64 {
    let served = topology.stores.iter().find(|served| served.name == store);
    served.map_or(0, |served| served.components.iter().map(|component| component.members).sum())
}

/// The requests of a run, in order.
#[derive(Debug)]
pub struct DrawnRequests {
    known: Arc<KnownKeys>,
    indices: Vec<u64>,
    keys: usize,
}

impl DrawnRequests {
    /// Draws this many requests of `keys` keys each. Equal seeds give equal requests.
    pub fn new(known: &Arc<KnownKeys>, draw: &Draw, requests: usize, keys: usize, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let distinct = requests.min(DRAWN_MAX / keys).max(1);
        let indices = (0..distinct * keys).map(|_| draw.next(&mut rng)).collect();
        Self { known: Arc::clone(known), indices, keys }
    }

    /// The keys of a request.
    pub fn request(&self, index: usize) -> BatchKeys {
        let start = index * self.keys % self.indices.len();
        self.known.request(&self.indices[start..start + self.keys])
    }
}
