//! The fan-out controllers that settings name, or that a program brings.

use super::{SessionSettings, SettingsError};
use kith_routing::{Controllers, FanOutController, Selector, fan_out::ControllerConfig};
use kith_types::FanOutKind;
use std::{collections::BTreeMap, sync::Arc};

/// Controllers that a program brings, each with what it decides about.
#[derive(Clone, Debug, Default)]
pub struct OwnControllers(BTreeMap<Selector, Arc<dyn FanOutController>>);

impl OwnControllers {
    /// Whether the program brings none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Equal if they are the same objects.
impl PartialEq for OwnControllers {
    fn eq(&self, other: &Self) -> bool {
        let same = |((one, of_one), (two, of_two)): ((&Selector, &Arc<_>), (&Selector, &Arc<_>))| {
            one == two && Arc::ptr_eq(of_one, of_two)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl SessionSettings {
    /// The same settings with a controller that the program brings. It decides about the fan-outs of `selector`, written as in
    /// `controllers`, whose entry of the same selector it replaces.
    ///
    /// # Errors
    /// [`SettingsError::Selector`].
    pub fn with_controller(
        mut self,
        selector: &str,
        controller: Arc<dyn FanOutController>,
    ) -> Result<Self, SettingsError> {
        let selector: Selector = selector.parse().map_err(SettingsError::Selector)?;
        self.own_controllers.0.insert(selector, controller);
        Ok(self)
    }

    /// The controllers.
    ///
    /// # Errors
    /// [`SettingsError::Selector`], [`SettingsError::Controller`].
    pub fn controllers(&self) -> Result<Controllers, SettingsError> {
        let mut controllers = Controllers::default();
        for kind in FanOutKind::ALL {
            if let Some(text) = steered_by_default(kind) {
                controllers.set_default(kind, self.controller(kind.name(), text)?.1);
            }
        }
        for (selector, text) in &self.controllers {
            let selects: Selector = selector.parse().map_err(SettingsError::Selector)?;
            let (text, controller) = self.controller(selector, text)?;
            controllers.choose(selects, &text, controller);
        }
        for (selector, controller) in &self.own_controllers.0 {
            controllers.choose(*selector, controller.name(), Arc::clone(controller));
        }
        Ok(controllers)
    }

    /// A controller as it is written, and the same with the numbers that it steers by.
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

/// Those of the default controllers (`kith_routing::Controllers`) that steer by numbers.
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
