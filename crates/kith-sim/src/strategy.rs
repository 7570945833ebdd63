//! The strategies that the paper compares, each a production policy with production controllers.

use kith_routing::fan_out::ControllerConfig;
use kith_routing::{Controllers, ReplicaPolicy, load::Hedging, policy};
use kith_types::FanOutKind;

/// How clients decide whom to ask.
#[derive(Clone)]
pub struct Strategy {
    /// What the figures call it.
    pub name: String,
    /// Who gets which key.
    pub policy: &'static dyn ReplicaPolicy,
    /// How many groups take part; only cluster-aware policies listen.
    pub controllers: Controllers,
    /// Whether late requests are sent to another node as well. The paper's are not.
    pub hedging: Hedging,
}

impl Strategy {
    /// A production policy with the paper's controllers.
    ///
    /// # Panics
    /// If there is no such policy.
    pub fn of_policy(name: impl Into<String>, policy: &str) -> Self {
        let policy = policy::by_name(policy).unwrap_or_else(|| panic!("{policy} is not a policy"));
        Self { name: name.into(), policy, controllers: Controllers::of_moolle(), hedging: Hedging::Off }
    }

    /// What Kith does unless it is told otherwise: the default policy of queries, the default controllers, late requests hedged.
    pub fn kith() -> Self {
        Self {
            controllers: Controllers::default(),
            hedging: Hedging::default(),
            ..Self::of_policy("default", "n-groups")
        }
    }

    /// Each partition's replicas in turn (Moolle §II-B).
    pub fn naive() -> Self {
        Self::of_policy("naive", "round-robin")
    }

    /// What the paper compares with: its reference \[16\] is Norbert's modified greedy set cover.
    pub fn set_cover_norbert() -> Self {
        Self::of_policy("set cover (Norbert)", "set-cover-norbert")
    }

    /// The textbook's greedy set cover.
    pub fn set_cover() -> Self {
        Self::of_policy("set cover (greedy)", "set-cover")
    }

    /// The cluster-aware policy with the paper's controller of each kind of query (§IV-C).
    pub fn moolle() -> Self {
        Self::of_policy("Moolle", "n-groups")
    }

    /// "Moolle (c)": the cluster-aware policy with a fixed number of groups (§V-A).
    pub fn moolle_static(groups: u32) -> Self {
        Self { name: format!("Moolle ({groups})"), ..Self::moolle().controlled(&format!("static({groups})")) }
    }

    /// The same policy with one controller for every kind of query.
    ///
    /// # Panics
    /// If the text is not a controller.
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
