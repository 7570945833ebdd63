//! Sends the writes of a traversal, and remembers what has become of them.

use super::{changes::Changes, reads::LiveReads};
use crate::{
    Session,
    gremlin::deadline::Deadline,
    session::{LiveWrite, new_name},
};
use kith_gremlin::GremlinError;
use kith_live::{CompletedWrite, Conditions, Mutation, Write};
use kith_query::{QueryError, QueryOptions};
use kith_types::ErrorCode;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The advice if the vertex already exists.
pub(super) const VERTEX_EXISTS: &str =
    "leave the id out to get a new one, use mergeV to find it, or change the vertex that has it";

/// The writes of one traversal.
pub(super) struct Writes<'a> {
    pub session: &'a Session,
    /// The name of the graph.
    pub graph: String,
    /// The options of the traversal.
    pub options: &'a QueryOptions,
    pub deadline: Deadline,
    pub changes: Changes,
    /// The number of writes that have been sent and whose outcome is not known yet.
    under_way: AtomicUsize,
}

impl<'a> Writes<'a> {
    /// No write yet.
    pub fn new(session: &'a Session, graph: String, options: &'a QueryOptions, deadline: Deadline) -> Self {
        let (changes, under_way) = (Changes::default(), AtomicUsize::new(0));
        Self { session, graph, options, deadline, changes, under_way }
    }

    /// Takes over the types that writes have added to an open graph.
    fn learn_types(&self, reads: &LiveReads<'_>) {
        let known = reads.types();
        let topology = self.session.topology();
        if let Some(live) = topology.graph(&self.graph).ok().and_then(|graph| graph.live.as_ref())
            && known.open
            && known.identity == live.types.identity
            && known.revision < live.types.revision
        {
            *reads.types.lock() = Arc::clone(&live.types);
        }
    }

    /// A write with a name, with which it is repeated until its outcome is known.
    pub fn named(&self, mutation: Mutation, conditions: Conditions) -> Write {
        Write { mutation, conditions, write_id: new_name() }
    }

    /// Sends one write. `what` tells it to the caller of a traversal that fails later, such as `added vertex 7`.
    ///
    /// # Errors
    /// Nothing was written, unless the code is `outcome_unknown`.
    pub async fn send(
        &self,
        reads: &LiveReads<'_>,
        write: &Write,
        what: &str,
    ) -> Result<CompletedWrite, GremlinError> {
        let (deadline, trace_id) = (Some(self.time_left(reads)?), self.options.trace_id.clone());
        let options = QueryOptions { deadline, trace_id, ..QueryOptions::default() };
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let written = LiveWrite::new(self.session, &self.graph, write, &options).carry_out().await;
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        match written {
            Ok(written) => {
                reads.fan_outs.run().await.require(&written.ticket);
                self.learn_types(reads);
                if written.done.version != 0 {
                    self.changes.made(what.to_owned());
                }
                Ok(written.done)
            }
            Err(error) => {
                if error.code() == ErrorCode::OutcomeUnknown {
                    self.changes.unknown(what.to_owned());
                }
                Err(reads.fan_outs.error(with_help(error)))
            }
        }
    }

    /// Whether a write has been sent whose outcome is not known yet.
    pub fn is_writing(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) != 0
    }

    /// The rest of the time that the traversal may take.
    ///
    /// # Errors
    /// It is over, or the caller has left.
    pub fn time_left(&self, reads: &LiveReads<'_>) -> Result<Duration, GremlinError> {
        self.deadline.left().map_err(|error| reads.fan_outs.error(error))
    }
}

/// Gives a refused write the help for traversals. The general one is about the names of writes, which traversals choose themselves.
fn with_help(error: QueryError) -> QueryError {
    let help = match error.code() {
        ErrorCode::ObjectExists => VERTEX_EXISTS,
        ErrorCode::UniqueTaken => "use another value, or change or drop the vertex that has it",
        _ => return error,
    };
    QueryError::Remote { code: error.code(), message: error.to_string(), help: help.to_owned() }
}

/// The error that an edge exists already.
pub(super) fn edge_exists(message: String) -> QueryError {
    let help = "use mergeE to add an edge only if it does not exist, property() to change one, or \
                g.with(\"kith.replace\", true) to replace it with all of its properties";
    QueryError::Remote { code: ErrorCode::ObjectExists, message, help: help.to_owned() }
}
