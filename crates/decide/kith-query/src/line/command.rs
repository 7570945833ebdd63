//! Operations as subcommands of a command. The options that all operations have are added to the flags of each.

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::marker::PhantomData;

/// A line that consists of an operation of `O` and options.
pub trait FromCommand<O> {
    /// The options that every operation has.
    type Options: Args;

    /// Operations that help lists after another one, because they are short forms of it: the name of each, and that of the
    /// other.
    const SHORT_FORMS: &'static [(&'static str, &'static str)] = &[];

    /// Adds the options to the flags of an operation.
    fn add_options(operation: Command) -> Command {
        Self::Options::augment_args(operation)
    }

    /// Returns the line that consists of an operation and its options.
    fn from_command(operation: O, options: Self::Options) -> Self;
}

/// The operations `O` as subcommands of a command, each with the options of a line `L`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLine<O, L> {
    /// The line of the operation that was given.
    pub line: L,
    operations: PhantomData<O>,
}

impl<O: Subcommand, L: FromCommand<O>> Subcommand for CommandLine<O, L> {
    fn augment_subcommands(command: Command) -> Command {
        let operations = O::augment_subcommands(Command::new("operations"));
        let names = operations.get_subcommands().map(|operation| operation.get_name());
        let names = in_order(names.collect(), L::SHORT_FORMS);
        names.iter().enumerate().fold(O::augment_subcommands(command), |command, (index, name)| {
            command.mut_subcommand(name, |operation| {
                let about = operation.get_about().cloned().unwrap_or_default();
                let operation = L::add_options(operation).about(about).long_about(None);
                if L::SHORT_FORMS.is_empty() { operation } else { operation.display_order(index) }
            })
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        O::has_subcommand(name)
    }
}

/// Moves each short form behind the operation that it stands for.
fn in_order<'a>(mut names: Vec<&'a str>, short_forms: &[(&str, &str)]) -> Vec<&'a str> {
    for (short, whole) in short_forms {
        let at = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
        if let Some(from) = at(&names, short) {
            let moved = names.remove(from);
            let to = at(&names, whole).map_or(names.len(), |whole| whole + 1);
            names.insert(to, moved);
        }
    }
    names
}

impl<O: Subcommand, L: FromCommand<O>> FromArgMatches for CommandLine<O, L> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (_, own) = matches.subcommand().ok_or_else(missing)?;
        let line = L::from_command(O::from_arg_matches(matches)?, L::Options::from_arg_matches(own)?);
        Ok(Self { line, operations: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
