//! An operation of graphs with its options. As arguments of a command, the options are added to the operation's own flags.

use crate::error::LineError;
use crate::{
    Operation, Shape,
    options::{After, GraphOptions, ReadOptions},
};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use kith_api::QueryOptions;
use kith_ops::{GraphQuery, Operand};

/// A query of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLine {
    /// What is asked.
    pub operation: Operation,
    /// The graph, and the options that only queries of graphs have.
    pub options: GraphOptions,
    /// The options that any read has.
    pub read: ReadOptions,
}

impl GraphLine {
    /// Refuses options that make no sense for the operation.
    ///
    /// # Errors
    /// `bad_request`.
    pub fn check(&self) -> Result<(), LineError> {
        let paged = self.options.limit.is_some() || self.options.after.is_some();
        match (self.operation.shape(), self.options.after) {
            (Shape::Ids | Shape::Entities, Some(After::Cursor(_))) => {
                Err(LineError::bad_request("`after` is the last id of the previous page, not a cursor"))
            }
            (Shape::Edges, Some(After::Id(_))) => {
                Err(LineError::bad_request("`after` is the cursor of the previous page, not an id"))
            }
            (Shape::Ids | Shape::Entities | Shape::Edges, _) => Ok(()),
            _ if paged => Err(LineError::bad_request(
                "`limit` and `after` need an answer that is a set of ids or edges; this operation has none",
            )),
            _ => Ok(()),
        }
    }

    /// Converts it to the query type of the client library.
    pub fn query(&self) -> GraphQuery {
        let mut operand = self.operation.operand();
        if let Operand::Edges(edges) = &mut operand {
            (edges.limit, edges.after) = (self.options.limit, self.options.cursor());
        }
        GraphQuery {
            operand,
            edge_type: self.options.edge_type.clone(),
            direction: self.options.direction(),
            workflow: self.read.workflow(),
        }
    }

    /// Converts the options to those of the client library.
    pub fn query_options(&self) -> QueryOptions {
        self.options.query_options(&self.read)
    }
}

impl Subcommand for GraphLine {
    fn augment_subcommands(command: Command) -> Command {
        let operations = Operation::augment_subcommands(Command::new("operations"));
        let names = operations.get_subcommands().map(|operation| operation.get_name().to_owned());
        names.fold(Operation::augment_subcommands(command), |command, name| {
            command.mut_subcommand(name, |operation| {
                let about = operation.get_about().cloned().unwrap_or_default();
                let operation = ReadOptions::augment_args(GraphOptions::augment_args(operation));
                operation.about(about).long_about(None)
            })
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Operation::has_subcommand(name)
    }
}

impl FromArgMatches for GraphLine {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (_, own) = matches.subcommand().ok_or_else(missing)?;
        Ok(Self {
            operation: Operation::from_arg_matches(matches)?,
            options: GraphOptions::from_arg_matches(own)?,
            read: ReadOptions::from_arg_matches(own)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
