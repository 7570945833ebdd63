//! The user who runs this command, for the history of stores and their owners.

use std::env;

/// The environment variables that may name the user, in the order in which they are read.
const NAMED_BY: [&str; 3] = ["KITH_WHO", "USER", "LOGNAME"];

/// Returns the name of the user, such as `ada`; `uid 1000` if no variable names the user, as under systemd and in
/// containers.
pub fn who() -> String {
    named(|variable| env::var(variable).ok(), rustix::process::getuid().as_raw())
}

fn named(variable: impl Fn(&str) -> Option<String>, uid: u32) -> String {
    let mut names = NAMED_BY.iter().filter_map(|name| variable(name));
    names.find(|name| !name.is_empty()).unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_name_is_reported_by_number() {
        let variables = |set: &'static [(&str, &str)]| {
            move |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            }
        };
        assert_eq!(named(variables(&[("LOGNAME", "eve"), ("USER", "ada")]), 1000), "ada");
        assert_eq!(named(variables(&[("USER", ""), ("LOGNAME", "eve")]), 1000), "eve");
        assert_eq!(named(variables(&[]), 1000), "uid 1000");
    }
}
