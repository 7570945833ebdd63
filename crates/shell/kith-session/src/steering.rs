//! The numbers that controllers steer by. They apply where a controller is named without numbers of its own.

use kith_routing::fan_out::{Argument, ControllerConfig};
use serde::{Deserialize, Serialize};

/// Measured limits and penalties; `kith bench calibrate` writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Steering {
    /// D_RPS: requests per second that this client sustains (Moolle, equation 7).
    pub client_requests_per_second: f64,
    /// D_SRPS: requests per second that one node sustains (Moolle, equation 10).
    pub node_requests_per_second: f64,
    /// Weight of the client's penalty in equation 5.
    pub penalty_client: f64,
    /// Weight of the nodes' penalty in equation 5.
    pub penalty_server: f64,
    /// The growth of a node's cost per key with the keys of the whole query; 0 is equation 5 as printed.
    pub penalty_growth: f64,
}

impl Default for Steering {
    /// The rates that the paper measured (Moolle §V-C), and penalties that yield its break points.
    fn default() -> Self {
        Self {
            client_requests_per_second: 5_000.0,
            node_requests_per_second: 10_000.0,
            penalty_client: 1.0,
            penalty_server: 4.0,
            penalty_growth: 1.5,
        }
    }
}

impl Steering {
    /// Adds the numbers that `config` leaves out. Controllers that use none of them stay unchanged.
    pub(crate) fn complete(&self, mut config: ControllerConfig) -> ControllerConfig {
        let wraps = matches!(config.name.as_str(), "early-terminating" | "pd");
        if wraps && !config.arguments.iter().any(|argument| matches!(argument, Argument::Controller(_))) {
            let inner = ControllerConfig { name: "global-rps".to_owned(), arguments: Vec::new() };
            config.arguments.push(Argument::Controller(inner));
        }
        for argument in &mut config.arguments {
            if let Argument::Controller(inner) = argument {
                *inner = self.complete(inner.clone());
            }
        }
        for (parameter, value) in self.numbers(&config.name) {
            if !is_given(&config, parameter) {
                config.arguments.push(Argument::Named(parameter.to_owned(), value));
            }
        }
        config
    }

    fn numbers(&self, controller: &str) -> Vec<(&'static str, f64)> {
        match controller {
            "client-qps" => vec![("client", self.client_requests_per_second)],
            "global-rps" => {
                vec![("client", self.client_requests_per_second), ("node", self.node_requests_per_second)]
            }
            "async-union" => vec![
                ("client", self.penalty_client),
                ("server", self.penalty_server),
                ("growth", self.penalty_growth),
            ],
            _ => Vec::new(),
        }
    }
}

/// Whether a parameter is given, by name or as the bare number that stands for a controller's main parameter.
fn is_given(config: &ControllerConfig, parameter: &str) -> bool {
    config.arguments.iter().any(|argument| match argument {
        Argument::Named(name, _) => name == parameter,
        Argument::Number(_) => config.name == "client-qps" && parameter == "client",
        Argument::Controller(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(text: &str) -> String {
        let steering = Steering {
            client_requests_per_second: 70.0,
            node_requests_per_second: 90.0,
            ..Steering::default()
        };
        steering.complete(text.parse().unwrap()).to_string()
    }

    #[test]
    fn what_a_controller_is_not_given_comes_from_the_measured_numbers() {
        assert_eq!(completed("client-qps"), "client-qps(client=70)");
        assert_eq!(completed("client-qps(5)"), "client-qps(5)");
        assert_eq!(completed("global-rps(client=5)"), "global-rps(client=5, node=90)");
        assert_eq!(completed("pd"), "pd(global-rps(client=70, node=90))");
        assert_eq!(completed("pd(client-qps, proportional=2)"), "pd(client-qps(client=70), proportional=2)");
        assert_eq!(completed("early-terminating"), "early-terminating(global-rps(client=70, node=90))");
        assert_eq!(completed("async-union(growth=0)"), "async-union(growth=0, client=1, server=4)");
        assert_eq!(completed("minimum"), "minimum");
    }
}
