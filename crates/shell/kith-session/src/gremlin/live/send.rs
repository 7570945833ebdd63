//! Sends the writes of a traversal, and remembers what has become of them.

use super::LiveGraph;
use crate::session::new_name;
use kith_gremlin::GremlinError;
use kith_live::{Conditions, Done, Mutation, Write};
use kith_query::{QueryError, QueryOptions};
use kith_types::ErrorCode;
use std::{sync::atomic::Ordering, time::Duration};

/// The advice if the vertex already exists.
pub(super) const VERTEX_EXISTS: &str =
    "leave the id out to get a new one, use mergeV to find it, or change the vertex that has it";

impl LiveGraph<'_> {
    /// Sends one write. `what` tells it to the caller of a traversal that fails later, such as `added vertex 7`; its argument is
    /// the outcome, if that is known.
    ///
    /// # Errors
    /// Nothing was written, unless the code is `outcome_unknown`.
    pub(super) async fn send(
        &self,
        mutation: Mutation,
        conditions: Conditions,
        what: impl Fn(Option<&Done>) -> String,
    ) -> Result<Done, GremlinError> {
        let (deadline, trace_id) = (Some(self.time_left()?), self.options.trace_id.clone());
        let options = QueryOptions { deadline, trace_id, ..QueryOptions::default() };
        // With a name, the write is repeated until its outcome is known.
        let write = Write { mutation, conditions, write_id: new_name() };
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let written = self.session.write(&self.name, &write, &options).await;
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        match written {
            Ok(written) => {
                self.fan_outs.run().await.require(&written.ticket);
                self.learn_types();
                if written.done.version != 0 {
                    self.changes.made(what(Some(&written.done)));
                }
                Ok(written.done)
            }
            Err(error) => {
                if error.code() == ErrorCode::OutcomeUnknown {
                    self.changes.unknown(what(None));
                }
                Err(self.fan_outs.error(with_help(error)))
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
    pub(super) fn time_left(&self) -> Result<Duration, GremlinError> {
        self.deadline.left().map_err(|error| self.fan_outs.error(error))
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
