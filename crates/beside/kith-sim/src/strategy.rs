//! The strategies that the paper compares. Each combines a production policy with production controllers.

use kith_routing::fan_out::ControllerConfig;
use kith_routing::{Controllers, ReplicaPolicy, load::Hedging, policy};
use kith_types::FanOutKind;

/// The strategy by which clients choose the nodes for their requests.
#[derive(Clone)]
pub struct Strategy {
    /// The name in figures.
    pub name: String,
    /// The policy, which assigns keys to nodes.
    pub policy: &'static dyn ReplicaPolicy,
    /// The controllers, which set the number of groups. Only cluster-aware policies follow them.
    pub controllers: Controllers,
    /// Whether the keys of late requests are also requested from another node. The paper does not hedge.
    pub hedging: Hedging,
}

impl Strategy {
    /// Returns a strategy of the given policy with the paper's controllers.
    ///
    /// # Panics
    /// If there is no such policy.
    pub fn of_policy(name: impl Into<String>, policy: &str) -> Self {
        let policy = policy::by_name(policy).unwrap_or_else(|| panic!("{policy} is not a policy"));
        Self { name: name.into(), policy, controllers: Controllers::of_moolle(), hedging: Hedging::Off }
    }

    /// Returns Kith's default strategy: the default policy of queries, the default controllers, and hedging of late
    /// requests.
    pub fn kith() -> Self {
        Self {
            controllers: Controllers::default(),
            hedging: Hedging::default(),
            ..Self::of_policy("default", "n-groups")
        }
    }

    /// Returns the strategy that takes each partition's replicas in turn (Moolle §II-B).
    pub fn naive() -> Self {
        Self::of_policy("naive", "round-robin")
    }

    /// Returns the strategy that the paper compares with: its reference \[16\] is Norbert's modified greedy set cover.
    pub fn set_cover_norbert() -> Self {
        Self::of_policy("set cover (Norbert)", "set-cover-norbert")
    }

    /// Returns the greedy set cover of textbooks.
    pub fn set_cover() -> Self {
        Self::of_policy("set cover (greedy)", "set-cover")
    }

    /// Returns the cluster-aware policy with the paper's controller for each kind of query (§IV-C).
    pub fn moolle() -> Self {
        Self::of_policy("Moolle", "n-groups")
    }

    /// Returns "Moolle (c)": the cluster-aware policy with a fixed number of groups (§V-A).
    pub fn moolle_static(groups: u32) -> Self {
        Self { name: format!("Moolle ({groups})"), ..Self::moolle().controlled(&format!("static({groups})")) }
    }

    /// Returns the same strategy with one controller for every kind of query.
    ///
    /// # Panics
    /// If the text is not a valid controller.
    pub fn controlled(mut self, controller: &str) -> Self {
        let config: ControllerConfig =
            controller.parse().unwrap_or_else(|error| panic!("{controller}: {error}"));
        let built = config.build().unwrap_or_else(|error| panic!("{controller}: {error}"));
        for kind in FanOutKind::ALL {
            self.controllers.choose(kind.into(), controller, built.clone());
        }
        self
    }
}
