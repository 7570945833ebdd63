//! The settings that are compared: policies, fan-out limits and controllers.

use crate::controllers::ControllerSet;
use kith_client::QueryOptions;
use kith_routing::{FanOutLimits, fan_out::LimitError};
use kith_session::SessionSettings;
use std::str::FromStr;

/// One way to answer the same queries. Omitted parts keep the value of the query or the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    pub name: String,
    pub policy: Option<String>,
    pub fan_out: Option<FanOutLimits>,
    /// The controllers, only for a direct session.
    pub controllers: ControllerSet,
}

impl Setting {
    /// The `options` of a query under this setting.
    pub fn apply(&self, options: &QueryOptions) -> QueryOptions {
        QueryOptions {
            policy: self.policy.clone().or_else(|| options.policy.clone()),
            fan_out: self.fan_out.unwrap_or(options.fan_out),
            ..options.clone()
        }
    }

    /// The settings of a session that answers under this setting.
    pub fn session(&self, base: &SessionSettings) -> SessionSettings {
        let mut settings = base.clone();
        self.controllers.apply(&mut settings);
        settings
    }

    /// Combines every policy with every limit and every set of controllers.
    pub fn product(policies: &[String], limits: &[FanOutLimits], controllers: &[ControllerSet]) -> Vec<Self> {
        let mut all = vec![Self::default()];
        all = cross(all, policies, |setting, policy| {
            setting.policy = Some(policy.clone());
            policy.clone()
        });
        all = cross(all, limits, |setting, limit| {
            setting.fan_out = Some(*limit);
            limit.to_string()
        });
        all = cross(all, controllers, |setting, set| {
            setting.controllers = set.clone();
            set.text.clone()
        });
        for setting in &mut all {
            if setting.name.is_empty() {
                "default".clone_into(&mut setting.name);
            }
        }
        all
    }
}

fn cross<T>(settings: Vec<Setting>, values: &[T], set: impl Fn(&mut Setting, &T) -> String) -> Vec<Setting> {
    if values.is_empty() {
        return settings;
    }
    let each = |setting: &Setting, value: &T| {
        let mut setting = setting.clone();
        let part = set(&mut setting, value);
        setting.name = [setting.name.as_str(), &part].join(" ").trim().to_owned();
        setting
    };
    settings.iter().flat_map(|setting| values.iter().map(move |value| each(setting, value))).collect()
}

/// Parses `name=… policy=… fan-out=… controllers=…`, separated by spaces.
impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut setting = Self { name: text.to_owned(), ..Self::default() };
        for part in text.split_whitespace() {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("{part:?} is not of the form key=value"))?;
            match key {
                "name" => value.clone_into(&mut setting.name),
                "policy" => setting.policy = Some(value.to_owned()),
                "fan-out" => {
                    let limits = value.parse();
                    setting.fan_out = Some(limits.map_err(|error: LimitError| error.to_string())?);
                }
                "controllers" => setting.controllers = value.parse()?,
                _ => return Err(format!("{key:?} is none of name, policy, fan-out, controllers")),
            }
        }
        Ok(setting)
    }
}

/// Splits at commas outside parentheses: `default,pd(global-rps(client=1,node=2))` has two parts.
pub fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0u32;
    text.split(|letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_routing::FanOutLimit;

    #[test]
    fn settings_are_written_in_one_line() {
        let setting: Setting = "name=naive policy=round-robin fan-out=max".parse().unwrap();
        assert_eq!((setting.name.as_str(), setting.policy.as_deref()), ("naive", Some("round-robin")));
        assert_eq!(setting.fan_out, Some(FanOutLimit::Max.into()));
        let by_kind: Setting = "fan-out=groups=1,sync-union=2".parse().unwrap();
        assert_eq!(by_kind.fan_out, "groups=1,sync-union=2".parse().ok());
        for wrong in ["naive", "polcy=x", "fan-out=all", "controllers=sync-union=minimal"] {
            assert!(wrong.parse::<Setting>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_controllers_end_at_commas_outside_parentheses() {
        let split = split_outside_parentheses("default,pd(global-rps(client=1,node=2)),maximum");
        assert_eq!(split, ["default", "pd(global-rps(client=1,node=2))", "maximum"]);
    }

    #[test]
    fn every_value_meets_every_other() {
        let policies = ["one-group".to_owned(), "n-groups".to_owned()];
        let settings = Setting::product(&policies, &[FanOutLimit::Min.into(), FanOutLimit::Max.into()], &[]);
        let names: Vec<&str> = settings.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["one-group min", "one-group max", "n-groups min", "n-groups max"]);
        assert_eq!(Setting::product(&[], &[], &[])[0].name, "default");
    }
}
