//! The largest number of groups that keeps this client within the request rate that it can sustain (Moolle §IV-D1, equations
//! 6 and 7).

use crate::LoadSnapshot;
use crate::fan_out::equations::groups_by_client_rps;
use crate::fan_out::{Build, ControllerState, FanOutController, QueryShape, whole_groups};
use std::sync::Arc;

/// The requests per second that the paper's clients sustain (§V-C).
pub(super) const CLIENT_RPS: f64 = 5_000.0;

/// Bounds fan-out by this client's request rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientQps {
    /// The requests per second within which the client should stay: D_RPS. `kith bench calibrate` measures it.
    pub client_rps: f64,
}

impl Default for ClientQps {
    fn default() -> Self {
        Self { client_rps: CLIENT_RPS }
    }
}

pub(super) const BUILD: Build = |parameters| {
    let client_rps = parameters.main_number("client", CLIENT_RPS)?;
    Ok(Arc::new(ClientQps { client_rps }))
};

impl ClientQps {
    /// Returns D_RPS less the rate of the client's other kinds of fan-out. The paper's equation has only one kind; a client
    /// with a mix of kinds has one limit for all.
    pub(super) fn rps_left(&self, query: &QueryShape, load: &LoadSnapshot) -> f64 {
        (self.client_rps - (load.client_rps() - load.kind(query.kind).rps)).max(0.0)
    }
}

impl FanOutController for ClientQps {
    fn name(&self) -> &'static str {
        "client-qps"
    }

    fn groups(&self, query: &QueryShape, load: &LoadSnapshot, _state: &mut ControllerState) -> u32 {
        let qps = load.kind(query.kind).qps;
        let left = self.rps_left(query, load);
        whole_groups(groups_by_client_rps(query.groups, query.nodes_per_group, qps, left), query)
    }
}
