//! An operation of graphs with its options. [`ReadCommand`] provides them as arguments of a command.

use crate::{
    GraphQuery, Operand, QueryOptions,
    line::{
        Operation, Operations, Shape,
        command::{CommandLine, FromCommand},
        error::LineError,
        live::check_tickets,
        options::{After, GraphOptions, ReadOptions},
    },
};
use clap::{Args, Command};
use kith_live::{Select, Start};

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
        self.check_live()?;
        let paged = self.options.limit.is_some() || self.options.after.is_some();
        match (self.operation.shape(), self.options.after) {
            (Shape::Ids | Shape::Entities, Some(After::Cursor(_) | After::Place(_))) => {
                Err(LineError::bad_request("`after` is the last id of the previous page"))
            }
            (Shape::Edges, Some(After::Id(_) | After::Place(_))) => {
                Err(LineError::bad_request("`after` is the cursor of the previous page"))
            }
            (Shape::Range, Some(After::Id(_) | After::Cursor(_))) => Err(LineError::bad_request(
                "`after` is the last association of the previous page: [time, id2]",
            )),
            (Shape::TimeRange, Some(_)) => Err(LineError::bad_request(
                "this operation has no `after`: give the last time of the previous page as `high`",
            )),
            (Shape::Ids | Shape::Entities | Shape::Edges | Shape::Range | Shape::TimeRange, _) => Ok(()),
            _ if paged => Err(LineError::bad_request(
                "`limit` and `after` need an answer that has pages: a set of ids, edges or associations",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses options and fields that do not apply to reads of objects and associations.
    fn check_live(&self) -> Result<(), LineError> {
        match &self.operation {
            Operation::ObjectGet(get) => get.check()?,
            Operation::ObjectFind(find) => find.check()?,
            Operation::AssocRange(range) if range.has_pos() && self.options.place().is_some() => {
                return Err(LineError::bad_request("give `pos` or `after`, not both"));
            }
            Operation::AssocGet(_)
            | Operation::AssocCount(_)
            | Operation::AssocRange(_)
            | Operation::AssocTimeRange(_) => {}
            _ => return Ok(()),
        }
        if self.options.edge_type.is_some() || self.options.direction.is_some() {
            return Err(LineError::bad_request(
                "this operation has no `edge_type` and no `direction`: they are for queries that follow edges",
            ));
        }
        Ok(())
    }

    /// Converts it to the query type of the client library.
    pub fn query(&self) -> GraphQuery {
        let mut operand = self.operation.operand();
        let limit = self.options.limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
        match &mut operand {
            Operand::Edges(edges) => {
                (edges.limit, edges.after) = (self.options.limit, self.options.cursor());
            }
            Operand::Find(find) => (find.limit, find.after) = (self.options.limit, self.options.after_id()),
            Operand::Associations { read, .. } => match &mut read.select {
                Select::Range { start, limit: most } => {
                    *most = limit;
                    *start = self.options.place().map_or(*start, Start::After);
                }
                Select::Times { limit: most, .. } => *most = limit,
                Select::Ids { .. } | Select::Count => {}
            },
            _ => {}
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
