//! Equations 1 to 10 of Moolle, one function each. The symbols of the paper are in parentheses.

/// The probability that a query of `keys` (`k`) uniformly random keys involves one given node out of `candidates`
/// (`n_candidate`). Equation 1.
///
/// # Panics
/// If there is no candidate.
pub fn involved_probability(keys: u32, candidates: u32) -> f64 {
    assert!(0 < candidates, "a query needs at least one candidate node");
    let n = f64::from(candidates);
    1.0 - ((n - 1.0) / n).powf(f64::from(keys))
}

/// The expected number of requests (`E`) of a query of `keys` uniformly random keys when `candidates` nodes may serve it.
/// Tends to `candidates` as `keys` grows. Equation 2.
///
/// # Panics
/// If there is no candidate.
pub fn expected_requests(keys: u32, candidates: u32) -> f64 {
    f64::from(candidates) * involved_probability(keys, candidates)
}

/// The expected number of requests for `groups` (`c_candidate`) groups of `nodes_per_group` (`n_nodes`) nodes. Equation 3.
///
/// # Panics
/// If there is no group or no node.
pub fn expected_requests_in_groups(keys: u32, groups: u32, nodes_per_group: u32) -> f64 {
    expected_requests(keys, groups * nodes_per_group)
}

/// The latency of a query (`L`): the client's time for its requests, plus the time of the slowest server. Equation 4.
pub fn query_latency(client: f64, servers: impl IntoIterator<Item = f64>) -> f64 {
    client + servers.into_iter().fold(0.0, f64::max)
}

/// The computation penalty of a query (`P`): the client's, plus that of the busiest server. Equation 5.
pub fn penalty(client: f64, servers: impl IntoIterator<Item = f64>) -> f64 {
    client + servers.into_iter().fold(0.0, f64::max)
}

/// The requests per second that a client sends (`E_RPS`) when each of its `qps` (`C_QPS`) queries asks every node of
/// `groups` (`c`) groups. Equation 6.
pub fn client_rps(groups: u32, nodes_per_group: u32, qps: f64) -> f64 {
    f64::from(groups) * f64::from(nodes_per_group) * qps
}

/// The largest number of groups (`c_selected`) with which a client stays within `rps_desired` (`D_RPS`). Not rounded; all
/// groups for an idle client. Equation 7.
pub fn groups_by_client_rps(groups: u32, nodes_per_group: u32, qps: f64, rps_desired: f64) -> f64 {
    let c = f64::from(groups);
    let expected = client_rps(groups, nodes_per_group, qps);
    if expected <= 0.0 { c } else { c.min(c * rps_desired / expected) }
}

/// The requests per second over all servers when `clients` (`m`) clients behave as in equation 6. Equation 8.
pub fn all_servers_rps(groups: u32, nodes_per_group: u32, clients: u32, qps: f64) -> f64 {
    client_rps(groups, nodes_per_group, qps) * f64::from(clients)
}

/// The requests per second at one server (`E_SRPS`) in this case. Equation 9.
pub fn server_rps(clients: u32, qps: f64) -> f64 {
    f64::from(clients) * qps
}

/// The largest number of groups with which neither the client exceeds `rps_desired` (`D_RPS`) nor any server exceeds
/// `server_rps_desired` (`D_SRPS`). Not rounded. Equation 10.
pub fn groups_by_global_rps(
    groups: u32,
    nodes_per_group: u32,
    clients: u32,
    qps: f64,
    rps_desired: f64,
    server_rps_desired: f64,
) -> f64 {
    let by_client = groups_by_client_rps(groups, nodes_per_group, qps, rps_desired);
    let expected = server_rps(clients, qps);
    if expected <= 0.0 { by_client } else { by_client.min(f64::from(groups) * server_rps_desired / expected) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_key_makes_a_single_request() {
        for candidates in [1, 6, 200] {
            assert!((expected_requests(1, candidates) - 1.0).abs() < 1e-9);
        }
        assert_eq!(expected_requests(0, 20), 0.0);
    }

    #[test]
    fn many_keys_reach_every_candidate() {
        assert!((expected_requests_in_groups(10_000, 3, 20) - 60.0).abs() < 1e-6);
        assert!((expected_requests_in_groups(50, 3, 20) - 34.1).abs() < 0.1);
    }

    #[test]
    fn equations_6_to_10_agree_with_each_other() {
        let (c, n, m, qps) = (10, 20, 4, 50.0);
        assert_eq!(client_rps(c, n, qps), 10_000.0);
        assert_eq!(all_servers_rps(c, n, m, qps) / f64::from(c * n), server_rps(m, qps));
        assert_eq!(groups_by_client_rps(c, n, qps, 5_000.0), 5.0);
        assert_eq!(groups_by_global_rps(c, n, m, qps, 5_000.0, 1e9), 5.0);
        assert_eq!(groups_by_global_rps(c, n, m, qps, 5_000.0, 40.0), 2.0);
        assert_eq!(groups_by_global_rps(c, n, m, 0.0, 5_000.0, 40.0), 10.0);
    }

    #[test]
    fn the_slowest_server_decides() {
        assert_eq!(query_latency(1.0, [2.0, 7.0, 3.0]), 8.0);
        assert_eq!(penalty(1.5, []), 1.5);
    }
}
