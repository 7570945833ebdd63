//! Balances the computation of a union between client and servers (Moolle §IV-C3, equation 5). It is meant for queries
//! without a waiting user, for which latency does not matter.
//!
//! The penalties of client and server are proportional to x·log x, the running time of a union. With these two alone, no
//! coefficients give the paper's break points: see `docs/design/0002-fan-out-control.md`. Therefore there is a third
//! coefficient, `growth`.

use crate::LoadSnapshot;
use crate::fan_out::equations::{expected_requests_in_groups, penalty};
use crate::fan_out::{Build, ControllerState, FanOutController, QueryShape};
use std::sync::Arc;

/// The penalty functions of equation 5.
///
/// Only ratios matter to the decision. `kith bench calibrate` measures both in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// The client's penalty for `x` requests is `client · x · log₂ x`.
    pub client: f64,
    /// A server's penalty for `x` keys is `server · (k / 1000)^growth · x · log₂ x`.
    pub server: f64,
    /// The growth of a server's cost per key with the number of keys of the whole query (`k`): members with many
    /// connections know members with many connections, so their lists are longer. 0 gives equation 5 as printed.
    pub growth: f64,
}

impl Default for Penalty {
    /// Gives the paper's break points for 10 groups of 20 nodes: queries of 450 keys go to one group, of 1,800 keys to five,
    /// and of 3,000 keys to all ten.
    fn default() -> Self {
        Self { client: 1.0, server: 4.0, growth: 1.5 }
    }
}

impl Penalty {
    /// Returns the penalty of a query of `keys` keys with `requests` requests, of which the largest has `busiest_keys` keys.
    /// Equation 5.
    pub fn of(&self, keys: u32, requests: f64, busiest_keys: f64) -> f64 {
        let scale = (f64::from(keys) / 1_000.0).powf(self.growth);
        penalty(self.client * union_work(requests), [self.server * scale * union_work(busiest_keys)])
    }
}

/// Returns x·log₂ x, or 0 for a single list.
fn union_work(x: f64) -> f64 {
    if x <= 1.0 { 0.0 } else { x * x.log2() }
}

/// Chooses the number of groups with the least penalty.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AsyncUnion {
    /// The penalty functions.
    pub penalty: Penalty,
}

pub(super) const BUILD: Build = |parameters| {
    let default = Penalty::default();
    let client = parameters.number("client", default.client)?;
    let server = parameters.number("server", default.server)?;
    let growth = parameters.number("growth", default.growth)?;
    Ok(Arc::new(AsyncUnion { penalty: Penalty { client, server, growth } }))
};

impl FanOutController for AsyncUnion {
    fn name(&self) -> &'static str {
        "async-union"
    }

    fn groups(&self, query: &QueryShape, _load: &LoadSnapshot, _state: &mut ControllerState) -> u32 {
        if query.keys <= 1 {
            return 1;
        }
        let penalty = |groups: u32| {
            let requests = expected_requests_in_groups(query.keys, groups, query.nodes_per_group);
            self.penalty.of(query.keys, requests, f64::from(query.keys) / requests.max(1.0))
        };
        let all = (1..=query.groups).map(|groups| (groups, penalty(groups)));
        // Take the first of equal ones, which has fewer requests for the same penalty.
        let least = all.min_by(|(_, a), (_, b)| a.total_cmp(b));
        least.map_or(1, |(groups, _)| groups)
    }
}
