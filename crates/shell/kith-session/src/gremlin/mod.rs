//! Traversals in Gremlin: each of their hops is a fan-out to the nodes (`docs/design/0020-gremlin.md`).

mod count;
mod deadline;
mod edge_scan;
mod explain;
mod fan_outs;
mod fields;
mod id_pages;
mod ids;
mod joined;
mod lists;
mod live;
mod loaded;
mod memory;
mod notes;
mod options;
mod reach;
mod rows;
mod traversal;

use crate::{Session, session::RESTARTS_MAX};
use deadline::Deadline;
use kith_gremlin::GremlinError;
use kith_query::{EarlyResults, GremlinAnswer, GremlinQuery, QueryError, QueryOptions};
use kith_traversal::evaluate::Meter;
use kith_types::{ErrorCode, OperationName};
use live::LiveGraph;
use loaded::LoadedGraph;
use std::{sync::Arc, time::Instant};
use traversal::{CompiledTraversal, Results, explained};

/// Evaluates a traversal over a graph.
///
/// # Errors
/// The traversal is wrong or asks for too much, or the nodes do not answer.
pub(crate) async fn traverse(
    session: &Session,
    graph: &str,
    query: &GremlinQuery,
    options: &QueryOptions,
) -> Result<GremlinAnswer, QueryError> {
    let mut options = options.clone();
    options.deadline.get_or_insert(session.settings().traversals.deadline_default);
    let waiting = (session.traversal_memory(), session.timeout(&options));
    let traversal =
        CompiledTraversal::new(query, &mut options, session.settings().traversals, waiting).await?;
    let known = Arc::clone(session.topology().graph(graph)?);
    // An explanation changes nothing.
    let changes_graph = traversal.plan.changes_graph() && !traversal.is_explained;
    if known.live.is_none() && changes_graph {
        let name = graph.to_owned();
        return Err(QueryError::LoadedGraph { name, what: "a traversal cannot change it" });
    }
    if changes_graph && !query.writes {
        return Err(undeclared());
    }
    let evaluation = GraphTraversal { session, graph, traversal: &traversal, options: &options };
    match &known.live {
        Some(live) => {
            live::check(&traversal.plan, &live.types)?;
            evaluation.live().await
        }
        None => evaluation.loaded().await,
    }
}

/// The evaluation of one traversal over one graph.
struct GraphTraversal<'a> {
    session: &'a Session,
    graph: &'a str,
    traversal: &'a CompiledTraversal,
    options: &'a QueryOptions,
}

impl GraphTraversal<'_> {
    async fn loaded(&self) -> Result<GremlinAnswer, QueryError> {
        let &Self { session, graph, traversal, options } = self;
        let (run, known) = session.begin(graph, OperationName::GREMLIN, options)?;
        let run = run.after(traversal.took);
        if traversal.is_explained {
            return explained(&traversal.plan, &known, run);
        }
        let deadline = Deadline::of(&run);
        let meter = self.meter();
        let source = LoadedGraph::new(run, known, Arc::clone(&meter));
        let early = (options.early.as_ref(), deadline.patience());
        let evaluation = traversal.evaluate(&source, meter, early);
        let results = deadline.keep(evaluation, || false).await?;
        let cause = |error| source.fan_outs.cause(&error).unwrap_or_else(|| to_query_error(&error));
        let Results { results, metrics } = results.map_err(cause)?;
        let (served, profile) = source.finish();
        let profile = traversal.shown(profile, session);
        Ok(GremlinAnswer { results, served, profile, metrics, wrote: false, warnings: Vec::new() })
    }

    /// Evaluates a traversal of a live graph. It shows the writes that were made through this session.
    async fn live(&self) -> Result<GremlinAnswer, QueryError> {
        let &Self { session, graph, traversal, options } = self;
        let mut restarts = 0;
        loop {
            let known = Arc::clone(session.topology().graph(graph)?);
            let Some(live) = &known.live else {
                return Err(QueryError::Internal { detail: format!("graph {graph:?} is not live any more") });
            };
            let identity = live.types.identity;
            let shown = self.showing_own_writes(identity);
            let (run, known) = session.begin(graph, OperationName::GREMLIN, &shown)?;
            let run = run.after(traversal.took);
            if traversal.is_explained {
                return explained(&traversal.plan, &known, run);
            }
            let deadline = Deadline::of(&run);
            let meter = self.meter();
            let source =
                LiveGraph::new((session, &shown), run, &live.types, (&traversal.limits, Arc::clone(&meter)));
            let early = options.early.as_ref();
            let evaluation = traversal.evaluate(&source, meter, (early, deadline.patience()));
            let evaluated = deadline.keep(evaluation, || source.is_writing()).await;
            let cause = |error| source.cause(&error).unwrap_or_else(|| to_query_error(&error));
            let error = match evaluated.and_then(|results| results.map_err(cause)) {
                Ok(Results { results, metrics }) => {
                    let (wrote, warnings) = (source.has_changes(), source.warnings());
                    let (served, profile) = source.finish();
                    let profile = traversal.shown(profile, session);
                    return Ok(GremlinAnswer { results, served, profile, metrics, wrote, warnings });
                }
                Err(error) => error,
            };
            let is_lost = error.code() == ErrorCode::HistoryLost;
            if is_lost {
                // Without a ticket of its own, a traversal need not show what the database has lost.
                session.own_writes().forget(identity);
            }
            let is_shown = early.is_some_and(EarlyResults::is_used);
            let begins_again = match is_lost && options.ticket.is_none() && shown.ticket.is_some() {
                true => !source.has_changes(),
                false => source.begins_again(&error).await,
            };
            if is_shown || RESTARTS_MAX <= restarts || !begins_again {
                return Err(source.failure(error));
            }
            restarts += 1;
        }
    }

    /// The meter of the memory of a traversal.
    fn meter(&self) -> Arc<Meter> {
        let Self { session, traversal, .. } = self;
        memory::meter(&traversal.limits, session.traversal_memory(), session.settings().traversals.memory)
    }

    /// The options of a traversal that also shows the writes which were made through this session.
    fn showing_own_writes(&self, graph: u64) -> QueryOptions {
        let mut options = self.options.clone();
        match (&mut options.ticket, self.session.own_writes().ticket(graph, Instant::now())) {
            (Some(ticket), Some(own)) if ticket.graph == own.graph => ticket.merge(&own),
            (none @ None, own) => *none = own,
            _ => {}
        }
        options
    }
}

/// A traversal changes the graph, and its request says that it does not.
fn undeclared() -> QueryError {
    QueryError::Remote {
        code: ErrorCode::BadRequest,
        message: "the traversal changes the graph, but its request does not say so".to_owned(),
        help: "set `writes` in the request, which then needs the right to write".to_owned(),
    }
}

/// An error of an evaluation as one of a query.
fn to_query_error(error: &GremlinError) -> QueryError {
    let GremlinError { code, message } = error.clone();
    match code {
        code @ (ErrorCode::BadRequest | ErrorCode::TooLarge | ErrorCode::UnsupportedOperation) => {
            QueryError::Remote { code, message, help: "see docs/gremlin.md".to_owned() }
        }
        code => QueryError::Remote { code, message, help: String::new() },
    }
}

/// An error of a query as one of an evaluation.
fn to_gremlin_error(error: &QueryError) -> GremlinError {
    GremlinError::new(error.code(), error.to_string())
}
