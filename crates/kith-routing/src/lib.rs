//! Routing decisions: which nodes serve what, which of them are asked, and what happens when one fails.
//!
//! Every query is routed by *controller × policy* (Moolle §III). A [`FanOutController`] decides how many replica groups may
//! take part, and a [`ReplicaPolicy`] assigns each key to a node. The result, a [`FanOutPlan`], is a value that can be
//! printed, compared and simulated. [`Execution`] then carries out one plan through replies, failures and deadlines.
//!
//! Nothing here does I/O, reads a clock, draws entropy or logs. Time and randomness are arguments, so that the simulator,
//! the tests and production run the same decisions.
//!
//! ```
//! use kith_routing::{Availability, GroupLimit, LoadSnapshot, PolicyInputs, PolicyState, placement, policy};
//! use kith_types::{PartitionCount, PartitionId};
//! use rand::{SeedableRng, rngs::StdRng};
//!
//! let partitions = PartitionCount::new(24).expect("24 is a valid count");
//! let table = placement::uniform_table(2, 3, partitions, 1).expect("six nodes can hold 24 partitions");
//! let up = Availability::all(&table);
//!
//! let keys: Vec<PartitionId> = [3, 17, 3, 8].map(PartitionId).to_vec();
//! let load = LoadSnapshot::default();
//! let inputs = PolicyInputs { view: table.view(&up), keys: &keys, limit: GroupLimit(1), load: &load };
//! let plan = policy::by_name("one-group")
//!     .expect("a registered policy")
//!     .plan(&inputs, &mut PolicyState::new(7), &mut StdRng::seed_from_u64(7))
//!     .expect("every partition has a replica that is up");
//! assert!(plan.requests() <= 3, "one group has three nodes");
//! ```

mod availability;
mod candidates;
pub mod execution;
pub mod fan_out;
mod health;
mod latencies;
mod leaders;
pub mod load;
mod owners;
mod pace;
pub mod placement;
mod plan;
pub mod policy;
mod quota;
mod rate;
mod stores;
mod table;
mod told;
mod write;

pub use availability::{Availability, NodeSet};
pub use candidates::Candidates;
pub use execution::Execution;
pub use fan_out::{Controllers, FanOutController, FanOutLimit, FanOutLimits, QueryShape, Selector};
pub use health::{Health, HealthChange, HealthEvent, HealthOptions};
pub use latencies::{Latencies, ReportedLatencies};
pub use leaders::{Leader, Leaders, Lives};
pub use load::{LoadMeter, LoadSnapshot, NodeLoad};
pub use owners::{OwnerChoice, OwnerOutcome, OwnerVerdict, Owners, OwnersOptions};
pub use pace::{Pace, PaceOptions, PaceSample, SeenFrom};
pub use plan::{Assignment, FanOutPlan, GroupLimit};
pub use policy::{PlanError, PlanResult, PolicyInputs, PolicyState, ReplicaPolicy};
pub use quota::{
    AdmittedBy, Ask as ReservationAsk, Booking, BookingStep, ExportStep, Pressure as QuotaPressure,
    QuotaExceeded, QuotaKind, QuotaRates, RESERVATION_LIFE, RESERVATION_PATIENCE, ReadQuota,
    Reply as ReservationReply, ReservationId, Reserved,
};
pub use rate::{RateLimiter, Turn};
pub use stores::{StoreReach, groups_of_store, store_groups};
pub use table::{
    GroupEntry, GroupIndex, GroupRole, NodeEntry, NodeIndex, RoutingTable, Strategy, TableError, TableParts,
};
pub use told::ToldReads;
pub use write::{AfterAttempt, FailedAttempt, WriteAttempts};
