//! Controllers as users write them: `minimum`, `static(3)`, `pd(global-rps(client=5000))`.
//!
//! The syntax is `name` or `name(argument, …)`. An argument is a number, `parameter=number`, or the controller that this one
//! wraps. Unknown names and parameters are errors that list the known ones.

mod read;

use crate::fan_out::{ALL, FanOutController, names};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A controller and its parameters, as text or built by hand.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerConfig {
    /// The name of the controller.
    pub name: String,
    /// The arguments in the order written.
    pub arguments: Vec<Argument>,
}

/// One argument of a controller.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A bare number, for controllers with one main parameter.
    Number(f64),
    /// A parameter by name.
    Named(String, f64),
    /// The wrapped controller.
    Controller(ControllerConfig),
}

/// The reason why no controller can be made from this text.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ConfigError {
    /// The text is not of the form `name(argument, …)`.
    #[error("controller {text:?} is not of the form name(argument, …): {expected} expected at {at}")]
    Syntax {
        /// The whole text.
        text: String,
        /// The valid continuation.
        expected: &'static str,
        /// The byte offset of the error.
        at: usize,
    },
    /// There is no such controller.
    #[error("unknown controller {name:?}; there are {}", known.join(", "))]
    UnknownController {
        /// The name as written.
        name: String,
        /// The known controllers.
        known: Vec<&'static str>,
    },
    /// The controller has no such parameter, or the argument is given twice.
    #[error("controller {controller:?} takes no argument {argument:?}")]
    UnknownArgument {
        controller: String,
        /// The argument as written.
        argument: String,
    },
    /// A parameter has a value that is out of range.
    #[error("{parameter} of controller {controller:?} is {got}, but must be {range}")]
    OutOfRange {
        controller: String,
        parameter: &'static str,
        got: f64,
        /// The allowed values.
        range: &'static str,
    },
}

impl ControllerConfig {
    /// Returns the controller.
    ///
    /// # Errors
    /// If a name or parameter is unknown, or a value is out of range.
    pub fn build(&self) -> Result<Arc<dyn FanOutController>, ConfigError> {
        let unknown = || ConfigError::UnknownController { name: self.name.clone(), known: names().collect() };
        let named = ALL.iter().find(|named| named.name == self.name).ok_or_else(unknown)?;
        let mut parameters = Parameters { config: self, used: vec![false; self.arguments.len()] };
        let controller = (named.build)(&mut parameters)?;
        parameters.check_all_used()?;
        Ok(controller)
    }
}

/// The arguments of one controller while it is being made. An argument that is not used is an error.
pub struct Parameters<'a> {
    config: &'a ControllerConfig,
    used: Vec<bool>,
}

impl Parameters<'_> {
    /// Returns the value of a named parameter, or `default` if it is not given.
    ///
    /// # Errors
    /// If the value is negative or not finite.
    pub fn number(&mut self, parameter: &'static str, default: f64) -> Result<f64, ConfigError> {
        let named = |argument: &Argument| match argument {
            Argument::Named(name, value) if name == parameter => Some(*value),
            _ => None,
        };
        let value = self.take(named).unwrap_or(default);
        self.check(parameter, value, 0.0 <= value && value.is_finite(), "a number from 0 up")?;
        Ok(value)
    }

    /// Returns the value of the main parameter, which is given by name or as a bare number.
    ///
    /// # Errors
    /// If the value is negative or not finite.
    pub fn main_number(&mut self, parameter: &'static str, default: f64) -> Result<f64, ConfigError> {
        let bare = |argument: &Argument| match argument {
            Argument::Number(value) => Some(*value),
            _ => None,
        };
        let default = self.take(bare).unwrap_or(default);
        self.number(parameter, default)
    }

    /// Returns the wrapped controller, if one is given.
    ///
    /// # Errors
    /// If the wrapped controller cannot be made.
    pub fn controller(&mut self) -> Result<Option<Arc<dyn FanOutController>>, ConfigError> {
        let wrapped = |argument: &Argument| match argument {
            Argument::Controller(config) => Some(config.clone()),
            _ => None,
        };
        self.take(wrapped).map(|config| config.build()).transpose()
    }

    /// Checks the value of a parameter.
    ///
    /// # Errors
    /// If `in_range` is false.
    pub fn check(
        &self,
        parameter: &'static str,
        got: f64,
        in_range: bool,
        range: &'static str,
    ) -> Result<(), ConfigError> {
        let controller = self.config.name.clone();
        if in_range { Ok(()) } else { Err(ConfigError::OutOfRange { controller, parameter, got, range }) }
    }

    fn take<T>(&mut self, wanted: impl Fn(&Argument) -> Option<T>) -> Option<T> {
        let arguments = self.config.arguments.iter().enumerate();
        let mut unused = arguments.filter(|(index, _)| !self.used[*index]);
        let (index, value) =
            unused.find_map(|(index, argument)| wanted(argument).map(|value| (index, value)))?;
        self.used[index] = true;
        Some(value)
    }

    fn check_all_used(&self) -> Result<(), ConfigError> {
        let Some(index) = self.used.iter().position(|used| !used) else { return Ok(()) };
        let argument = self.config.arguments[index].to_string();
        Err(ConfigError::UnknownArgument { controller: self.config.name.clone(), argument })
    }
}

impl fmt::Display for ControllerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.arguments.is_empty() {
            let arguments: Vec<String> = self.arguments.iter().map(Argument::to_string).collect();
            write!(f, "({})", arguments.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Number(number) => write!(f, "{number}"),
            Argument::Named(name, number) => write!(f, "{name}={number}"),
            Argument::Controller(config) => write!(f, "{config}"),
        }
    }
}
