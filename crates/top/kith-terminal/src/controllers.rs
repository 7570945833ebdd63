//! Fan-out controllers on the command line: the controllers that a fast client uses.

use kith_routing::Selector;
use kith_session::SessionSettings;
use kith_types::FanOutKind;
use std::{collections::BTreeMap, str::FromStr};

/// Controllers by selector (`network=static(2);@background=maximum`), one controller for every fan-out to several nodes
/// (`maximum`), or `default`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerSet {
    /// The text that was given.
    pub text: String,
    by_selector: BTreeMap<String, String>,
}

impl ControllerSet {
    /// Whether the set changes nothing.
    pub fn is_empty(&self) -> bool {
        self.by_selector.is_empty()
    }

    /// Adds the controllers to the settings of a session. They replace those with the same selectors.
    pub fn apply(&self, settings: &mut SessionSettings) {
        settings.controllers.extend(self.by_selector.clone());
    }
}

impl FromStr for ControllerSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut by_selector = BTreeMap::new();
        for part in text.split(';').filter(|part| *part != "default" && !part.is_empty()) {
            // An `=` inside parentheses belongs to a parameter.
            let named = part.split_once('=').filter(|(selector, _)| !selector.contains('('));
            match named {
                Some((selector, controller)) => {
                    by_selector.insert(selector.to_owned(), controller.to_owned());
                }
                None => {
                    // A fan-out for a single key leaves the controller no choice.
                    let several = FanOutKind::ALL.iter().filter(|kind| **kind != FanOutKind::SingleKey);
                    by_selector
                        .extend(several.map(|kind| (Selector::from(*kind).to_string(), part.to_owned())));
                }
            }
        }
        let set = Self { text: text.to_owned(), by_selector };
        let mut settings = SessionSettings::default();
        set.apply(&mut settings);
        settings.controllers().map_err(|error| error.to_string())?;
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_by_selector_or_for_all() {
        let set: ControllerSet = "early-terminable=maximum;network@background=static(2)".parse().unwrap();
        assert_eq!(set.by_selector.len(), 2);
        assert_eq!(set.by_selector["network@background"], "static(2)");
        assert_eq!("maximum".parse::<ControllerSet>().unwrap().by_selector.len(), 5);
        assert!("default".parse::<ControllerSet>().unwrap().is_empty());
        assert_eq!(
            "client-qps(client=5)".parse::<ControllerSet>().unwrap().by_selector["sync-union"],
            "client-qps(client=5)"
        );
    }

    #[test]
    fn unknown_selectors_and_controllers_are_refused_with_the_known_ones() {
        let error = |text: &str| text.parse::<ControllerSet>().unwrap_err();
        assert!(error("sync-onion=maximum").contains("kinds: single-key"), "{}", error("sync-onion=maximum"));
        assert!(
            error("network=maximal").contains("there are static, minimum"),
            "{}",
            error("network=maximal")
        );
    }
}
