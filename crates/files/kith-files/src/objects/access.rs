//! Access to object stores: their settings, and how long failed requests are repeated.

use std::fmt;
use std::time::Duration;

/// The time for which a request that fails for a temporary reason is repeated. A store that restarts is usually back
/// within this time.
const RETRY_FOR: Duration = Duration::from_secs(60);

/// The environment variable that sets another number of seconds. A value that is not a number is ignored.
const RETRY_VARIABLE: &str = "KITH_OBJECTS_RETRY_SECONDS";

/// Prefixes of environment variables that are settings of object stores.
const PREFIXES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// Settings for access to object stores.
#[derive(Clone)]
pub struct Access {
    /// Settings of the `object_store` crate, such as `aws_access_key_id`. Those of other kinds of stores are ignored.
    pub settings: Vec<(String, String)>,
    /// The time for which failed requests are repeated, with growing pauses.
    pub retry_for: Duration,
}

impl Access {
    /// Reads the settings from the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
    /// `AWS_ENDPOINT_URL`, `AWS_VIRTUAL_HOSTED_STYLE_REQUEST` and the like; `GOOGLE_…`; `AZURE_…`;
    /// `KITH_OBJECTS_RETRY_SECONDS`.
    pub fn from_environment() -> Self {
        let named = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let ours = named.filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
        let settings = ours.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let retry_for = std::env::var(RETRY_VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
        Self { settings, retry_for: retry_for.map_or(RETRY_FOR, Duration::from_secs) }
    }

    /// Whether the settings name an endpoint with `http://`. A user who writes this wants no encryption, so it is
    /// allowed.
    #[cfg(any(feature = "cloud", test))]
    pub(crate) fn is_plain_http(&self) -> bool {
        let names_a_service = |name: &str| name.contains("endpoint") || name.contains("base_url");
        self.settings.iter().any(|(name, value)| names_a_service(name) && value.starts_with("http://"))
    }
}

impl fmt::Debug for Access {
    /// Omits the values, because some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.settings.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Access").field("settings", &names).field("retry_for", &self.retry_for).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_is_named_without_encryption_is_meant_so() {
        let is_plain = |name: &str, value: &str| {
            let settings = vec![(name.to_owned(), value.to_owned())];
            Access { settings, retry_for: RETRY_FOR }.is_plain_http()
        };
        assert!(is_plain("aws_endpoint_url", "http://here") && is_plain("google_base_url", "http://here"));
        assert!(!is_plain("google_base_url", "https://there") && !is_plain("aws_region", "http://odd"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let settings = vec![("aws_secret_access_key".to_owned(), "hunter2".to_owned())];
        let shown = format!("{:?}", Access { settings, retry_for: RETRY_FOR });
        assert!(shown.contains("aws_secret_access_key") && !shown.contains("hunter2"), "{shown}");
    }
}
