//! Who runs this command, for the history of stores and their owners.

use std::env;

/// The name of the user, as `ada`; `unknown` where the system does not say.
pub fn who() -> String {
    let named = ["KITH_WHO", "USER", "LOGNAME"].iter().find_map(|name| env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
