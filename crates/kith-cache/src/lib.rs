//! The caches of routers and nodes. The network cache (Moolle §IV-A, Algorithms 1 and 2) and the other caches here are
//! state machines.
//!
//! - [`NetworkCache`] decides which networks are kept, which are served stale, and who fetches a network that several
//!   queries want at once.
//! - [`ListCache`] keeps whole neighbour lists of immutable versions.
//! - [`owner_of`] says which of several routers caches a member, so that the routers together hold one cache instead of
//!   copies.
//! - [`live`] and [`adjacency`] follow the logs of live graphs: [`live`] for reads of objects and associations,
//!   [`adjacency`] for graph queries.
//!
//! The caller does the fetching and the waiting, and reads the clock: every input that needs the time takes it as an
//! argument.
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
pub use flights::{Failure, FlightId, Landing};
pub use list_cache::ListCache;
pub use origin::{Basis, Origin};
pub use owner::owner_of;
