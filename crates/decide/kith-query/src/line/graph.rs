//! An operation of graphs with its options. [`ReadCommand`] provides them as arguments of a command.

use crate::{
    GraphQuery, Operation, QueryOptions,
    line::{
        Operations,
        command::{CommandLine, FromCommand},
        error::LineError,
        live::check_tickets,
        options::{GraphOptions, ReadOptions},
    },
};
use clap::{Args, Command};

/// A query of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphLine {
    /// The operation.
    pub operation: Operation,
    /// The graph, and the options that only queries of graphs have.
    pub options: GraphOptions,
    /// The options that every read has.
    pub read: ReadOptions,
}

impl GraphLine {
    /// Refuses options that do not apply to the operation.
    ///
    /// # Errors
    /// Returns `bad_request` for such an option.
    pub fn check(&self) -> Result<(), LineError> {
        check_tickets(&self.options.ticket)?;
        let follows_edges = self.options.edge_type.is_some() || self.options.direction.is_some();
        if self.operation.needs_live_graph() && follows_edges {
            return Err(LineError::bad_request(
                "this operation has no `edge_type` and no `direction`: they are for queries that follow edges",
            ));
        }
        self.operation.check_page(&self.options.page()).map_err(LineError::bad_request)
    }

    /// Converts it to a [`GraphQuery`].
    pub fn query(&self) -> GraphQuery {
        let mut operation = self.operation.clone();
        operation.set_page(self.options.page());
        GraphQuery {
            operation,
            edge_type: self.options.edge_type.clone(),
            direction: self.options.direction(),
            workflow: self.read.workflow(),
        }
    }

    /// Converts the options to [`QueryOptions`].
    pub fn query_options(&self) -> QueryOptions {
        self.options.query_options(&self.read)
    }
}

/// Operations of graphs as subcommands, each with the options of every query of a graph.
pub type ReadCommand<O> = CommandLine<O, GraphLine>;

/// The options of every query of a graph.
#[derive(Args, Debug)]
pub struct QueryFlags {
    #[command(flatten)]
    options: GraphOptions,
    #[command(flatten)]
    read: ReadOptions,
}

impl<O: Operations> FromCommand<O> for GraphLine {
    type Options = QueryFlags;
    const SHORT_FORMS: &'static [(&'static str, &'static str)] = O::SHORT_FORMS;

    fn add_options(operation: Command) -> Command {
        let mut operation = QueryFlags::augment_args(operation);
        if !O::FOLLOWS_EDGES {
            // `GraphLine::check` refuses them.
            for flag in ["edge_type", "direction"] {
                operation = operation.mut_arg(flag, |flag| flag.hide(true));
            }
        }
        operation
    }

    fn from_command(operation: O, QueryFlags { options, read }: QueryFlags) -> Self {
        Self { operation: operation.into(), options, read }
    }
}
