//! Routing decisions: which nodes serve what, which of them are asked, and what happens when one fails. `kith-session`
//! carries them out for real clusters, and `kith-sim` for simulated ones. Nothing here does I/O, reads a clock, draws
//! entropy or logs: time and randomness are arguments.
//!
//! ```text
//! query, load ──► FanOutController ──► number of groups ┐
//! keys, table, availability ────────────────────────────┴─► ReplicaPolicy ──► FanOutPlan ──► Execution ──► outcome
//! ```
//!
//! A [`FanOutController`] decides how many replica groups may take part, and a [`ReplicaPolicy`] assigns each key to a
//! node (Moolle §III). The [`FanOutPlan`] is a plain value. An [`Execution`] carries one plan through replies, retries,
//! hedges and its deadline, and ends exactly once with every key accounted for.
//!
//! - [`policy`], [`fan_out`]: one file for each policy and each controller.
//! - [`execution`]: `failure` and `retry` decide about repeats, `hedge`, `rule` and `budget` about second requests.
//! - `table`, [`placement`], `stores`: who owns which partition, and where replicas are placed.
//! - `health`, `availability`, [`load`]: which nodes are up, how busy they are, and after which time a request is late.
//! - `leaders`: which node leads which partition of a live graph.
//! - `quota`, `rate`, `pace`: read quotas, limits on bytes, and fetches that give way to reads.
//! - [`rebalance`]: how a cluster changes its shape.
//! - `owners`: whether a router forwards a query to the router that owns its member.
//!
//! To add a policy, write `policy/<name>.rs`, its line in [`policy::ALL`], and `testdata/policy/<name>.txt`. To add a
//! controller, write `fan_out/<name>.rs` and its line in `fan_out/mod.rs`; a program can also bring its own.

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
pub mod rebalance;
mod reported;
mod stores;
mod table;

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
    AdmittedBy, Booking, BookingStep, ExportStep, GrantedReservation, Pressure as QuotaPressure,
    QuotaExceeded, QuotaKind, QuotaRates, QuotaRefusal, RESERVATION_LIFE, RESERVATION_TIMEOUT, ReadQuota,
    ReservationId, ReservationReply, ReservationRequest,
};
pub use rate::{RateLimiter, Turn};
pub use reported::ReportedReads;
pub use stores::{StoreReach, groups_of_store, store_groups};
pub use table::{
    GroupEntry, GroupIndex, GroupRole, NodeEntry, NodeIndex, RoutingTable, Strategy, TableError, TableParts,
};
