//! Requests as questions to the service.

use super::{failure::of_gremlin, results::Form};
use chrono::{DateTime, FixedOffset, Utc};
use kith_gremlin::{
    Room,
    message::{Operation, Options},
    text,
    value::{Map, Value},
};
use kith_query::{GremlinQuery, GremlinTraversal, QueryError, QueryOptions, Question};
use kith_types::clock::since_1970;
use std::{sync::Arc, time::Duration};

/// The name of the traversal source in bytecode.
const SOURCE: &str = "g";
/// The languages that texts may be said to be in. Both are read as gremlin-language.
const LANGUAGES: [&str; 2] = ["gremlin-lang", "gremlin-groovy"];

/// The question of a request to a graph.
#[derive(Debug)]
pub(super) struct GraphQuestion {
    pub graph: String,
    pub query: GremlinQuery,
    pub options: QueryOptions,
    /// How the results are sent.
    pub form: Form,
}

impl GraphQuestion {
    /// The question in the operation of a request, which was decoded within `room`.
    ///
    /// # Errors
    /// The text cannot be read; the language is another than Gremlin; the operation asks nothing of a graph; there is no room.
    pub fn new(operation: Operation, options: &Options, room: &mut Room) -> Result<Self, QueryError> {
        let (source, bytecode, form) = match operation {
            Operation::Bytecode(bytecode) => (Arc::from(SOURCE), bytecode, Form::Traversers),
            Operation::Eval { gremlin, bindings, language } => {
                check_language(language.as_deref())?;
                let inputs = text::Inputs { bindings: &bindings, now: now(), entropy: rand::random() };
                let script = text::parse_within(&gremlin, &inputs, room);
                let script = script.map_err(|error| of_gremlin(error.into()))?;
                let (source, terminal) = (Arc::clone(&script.source), script.terminal);
                (source, Arc::new(script.into_bytecode()), Form::Plain(terminal))
            }
            Operation::Authentication(_) => {
                let detail = "credentials are not a traversal".to_owned();
                return Err(QueryError::Internal { detail });
            }
        };
        let query = GremlinQuery {
            writes: bytecode.changes_graph(),
            traversal: GremlinTraversal::decoded(bytecode, room),
            // Gremlin Server gives elements their properties too, unless the request says otherwise.
            with_properties: options.materialize_properties.unwrap_or(true),
            // `explain()` is an instruction of the bytecode.
            is_explained: false,
        };
        // No limit is the default of the service, which has an upper limit.
        let deadline = options.evaluation_timeout.filter(|timeout| *timeout != Duration::MAX);
        let options_of_query = QueryOptions { deadline, ..QueryOptions::default() };
        Ok(Self { graph: graph(&source, &options.aliases), query, options: options_of_query, form })
    }

    /// The question.
    pub fn question(&self) -> Question {
        Question::Gremlin { graph: self.graph.clone(), query: self.query.clone() }
    }
}

/// The name of the graph that a traversal source stands for: its alias, or the name of the source itself.
fn graph(source: &str, aliases: &Map) -> String {
    let alias = aliases.get(&Value::text(source)).and_then(Value::as_text);
    alias.unwrap_or(source).to_owned()
}

fn check_language(language: Option<&str>) -> Result<(), QueryError> {
    match language {
        Some(other) if !LANGUAGES.contains(&other) => {
            let detail = format!("the language {other:?} is not supported; use one of {LANGUAGES:?}");
            Err(QueryError::BadRequest { detail })
        }
        _ => Ok(()),
    }
}

fn now() -> DateTime<FixedOffset> {
    let since = since_1970();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(0);
    DateTime::<Utc>::from_timestamp(seconds, since.subsec_nanos()).unwrap_or_default().fixed_offset()
}
