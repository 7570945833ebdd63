//! The fan-out controllers that settings name, and those that a program adds.

use super::{SessionSettings, SettingsError};
use kith_query::Question;
use kith_routing::{Controllers, FanOutController, Selector, fan_out::ControllerConfig};
use kith_types::FanOutKind;
use std::{collections::BTreeMap, sync::Arc};

/// The controllers that a program adds, by selector.
#[derive(Clone, Debug, Default)]
pub struct OwnControllers(BTreeMap<Selector, Arc<dyn FanOutController>>);

impl OwnControllers {
    /// Whether the program adds no controllers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Equal if they hold the same objects.
impl PartialEq for OwnControllers {
    fn eq(&self, other: &Self) -> bool {
        let same = |((one, of_one), (two, of_two)): ((&Selector, &Arc<_>), (&Selector, &Arc<_>))| {
            one == two && Arc::ptr_eq(of_one, of_two)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl SessionSettings {
    /// Returns the settings with a controller that the program adds for the fan-outs of `selector`. The selector is written
    /// as in `controllers`, and replaces the entry there with the same selector.
    ///
    /// # Errors
    /// [`SettingsError::Selector`] if the selector is wrong.
    pub fn with_controller(
        mut self,
        selector: &str,
        controller: Arc<dyn FanOutController>,
    ) -> Result<Self, SettingsError> {
        let selector: Selector =
            Selector::parse(selector, &Question::operations()).map_err(SettingsError::Selector)?;
        self.own_controllers.0.insert(selector, controller);
        Ok(self)
    }

    /// Builds all controllers that the settings name.
    ///
    /// # Errors
    /// [`SettingsError::Selector`] and [`SettingsError::Controller`] if an entry is wrong.
    pub fn controllers(&self) -> Result<Controllers, SettingsError> {
        let mut controllers = Controllers::default();
        for kind in FanOutKind::ALL {
            if let Some(text) = steered_by_default(kind) {
                controllers.set_default(kind, self.controller(kind.name(), text)?.1);
            }
        }
        for (selector, text) in &self.controllers {
            let selects: Selector =
                Selector::parse(selector, &Question::operations()).map_err(SettingsError::Selector)?;
            let (text, controller) = self.controller(selector, text)?;
            controllers.choose(selects, &text, controller);
        }
        for (selector, controller) in &self.own_controllers.0 {
            controllers.choose(*selector, controller.name(), Arc::clone(controller));
        }
        Ok(controllers)
    }

    /// Builds the controller that `text` names, with the steering numbers that it leaves out. Returns its text too.
    fn controller(
        &self,
        selector: &str,
        text: &str,
    ) -> Result<(String, Arc<dyn FanOutController>), SettingsError> {
        let built = text.parse().and_then(|config: ControllerConfig| {
            let config = self.steering.complete(config);
            Ok((config.to_string(), config.build()?))
        });
        built.map_err(|error| SettingsError::Controller {
            selector: selector.to_owned(),
            text: text.to_owned(),
            detail: error.to_string(),
        })
    }
}

/// The text of a kind's default controller (`kith_routing::Controllers`) if steering numbers apply to it.
fn steered_by_default(kind: FanOutKind) -> Option<&'static str> {
    match kind {
        FanOutKind::AsyncUnion => Some("async-union"),
        FanOutKind::SingleKey
        | FanOutKind::NonUnion
        | FanOutKind::SyncUnion
        | FanOutKind::EarlyTerminable
        | FanOutKind::Broadcast => None,
    }
}
