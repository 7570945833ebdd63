//! The caches of routers and nodes, as state machines. They decide what is kept, what is served, and who fetches what
//! several queries want at once. The caller does the fetching and the waiting, and passes the time in: `kith-router`
//! for networks and lists, `kith-node` for live graphs, `kith-sim` for simulated ones.
//!
//! - [`NetworkCache`] (`cache`, `flights`, `queues`): second-degree networks, fresh, stale or fetched (Moolle §IV-A,
//!   Algorithms 1 and 2).
//! - [`ListCache`] (`list_cache`, `lists`): whole neighbour lists of immutable versions.
//! - [`owner_of`]: which of several routers caches a member, so that they hold one cache together.
//! - [`live`]: follows the log of a partition, and answers reads of objects and associations. `partition` decides which
//!   rows that were read may still be used.
//! - [`adjacency`]: follows the same log, and keeps the sorted lists that graph queries read.
//!
//! An entry serves only the version that it was read from ([`Origin`]). A live cache answers from memory only while a
//! proof of freshness holds.
//!
//! ```
//! use kith_cache::{CacheOptions, Lookup, Mode, NetworkCache, Origin, Basis};
//! use kith_types::{StoreVersion, Timestamp};
//!
//! let mut cache: NetworkCache<u64, &str, u32> = NetworkCache::new(CacheOptions::default());
//! let pinned = Origin { component: StoreVersion(7), graph: StoreVersion(9) };
//! let now = Timestamp::ZERO;
//! let Lookup::Fetch(flight) = cache.get(&1005, pinned, now, Mode::Use) else { panic!("it is empty") };
//! assert_eq!(cache.get(&1005, pinned, now, Mode::Use), Lookup::Join(flight), "one fetch for both");
//! assert_eq!(cache.join(flight, 42), Ok(()));
//! assert_eq!(cache.filled(flight, "its network", Basis::Component, 11, now), [42], "the waiters");
//! assert_eq!(cache.get(&1005, pinned, now, Mode::Use), Lookup::Hit("its network"));
//! ```
//!
//! A new cache belongs here if it decides, with its shell in the process that owns it.

pub mod adjacency;
mod cache;
mod counters;
mod flights;
mod list_cache;
mod lists;
pub mod live;
mod origin;
mod owner;
mod queues;

pub use cache::{CacheOptions, Lookup, Mode, NetworkCache};
pub use counters::CacheCounters;
pub use flights::{AfterFailure, Failure, FlightId};
pub use list_cache::ListCache;
pub use origin::{Basis, Origin};
pub use owner::owner_of;
