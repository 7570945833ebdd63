//! The question of a request.

use super::{
    Parts,
    arguments::{Arguments, text, wanted},
    authentication::{Credentials, credentials},
};
use crate::{
    assemble,
    bytecode::Bytecode,
    error::{GremlinError, Result},
    value::{Map, Value},
};
use kith_types::ErrorCode;
use std::{num::NonZeroU64, sync::Arc, time::Duration};
use uuid::Uuid;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the driver; its answers have it too.
    pub id: Uuid,
    /// The question.
    pub operation: Operation,
    /// How it is to be answered.
    pub options: Options,
}

/// The question of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Evaluate a text. Its results are plain values.
    Eval {
        /// The text.
        gremlin: Arc<str>,
        /// The values of variables in the text, whose names are the keys: strings.
        bindings: Map,
        /// The language of the text, such as `gremlin-lang` or `gremlin-groovy`.
        language: Option<Arc<str>>,
    },
    /// Evaluate a traversal. Its results are traversers.
    Bytecode(Arc<Bytecode>),
    /// Say who asks the later requests of the connection.
    Authentication(Credentials),
}

/// How a request is to be answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The names of traversal sources: that in the text or traversal, which is mostly `g`, and that of the server. Both are
    /// strings.
    pub aliases: Map,
    /// The most results in one message.
    pub batch_size: Option<NonZeroU64>,
    /// How long the evaluation may take. [`Duration::MAX`] if the driver asks for no limit.
    pub evaluation_timeout: Option<Duration>,
    /// Whether elements in results have their properties; `None` if the driver does not say.
    pub materialize_properties: Option<bool>,
    /// The name of the driver.
    pub user_agent: Option<Arc<str>>,
}

impl Request {
    /// The request of these parts.
    pub(super) fn new(id: Uuid, parts: Parts) -> Result<Self> {
        let mut arguments = Arguments::new(parts.arguments);
        let operation = match (&*parts.processor, &*parts.operation) {
            ("session", _) => {
                let operation = &parts.operation;
                let message = format!(
                    "sessions are not supported (operation {operation:?}); send requests without one"
                );
                return Err(GremlinError::new(ErrorCode::UnsupportedOperation, message));
            }
            (_, "authentication") => Operation::Authentication(credentials(&mut arguments)?),
            ("", "eval") => Operation::Eval {
                gremlin: text("gremlin", arguments.required("gremlin")?)?,
                bindings: arguments.map("bindings")?,
                language: arguments.text("language")?,
            },
            ("traversal", "bytecode") => match arguments.required("gremlin")? {
                Value::Traversal(bytecode) => Operation::Bytecode(bytecode),
                other => return Err(wanted("gremlin", "a Traversal", &other)),
            },
            (processor, operation) => {
                let what = format!("the operation {operation:?} of the processor {processor:?}");
                return Err(GremlinError::unsupported(what));
            }
        };
        Ok(Self { id, operation, options: Options::new(&mut arguments)? })
    }
}

impl Options {
    fn new(arguments: &mut Arguments) -> Result<Self> {
        let aliases = arguments.map("aliases")?;
        if let Some(other) = aliases.values().find(|name| name.as_text().is_none()) {
            return Err(assemble::wanted("each value of the argument \"aliases\"", "a String", other));
        }
        let batch_size = arguments.count("batchSize")?;
        let batch_size = batch_size.map(|size| NonZeroU64::new(size).ok_or_else(no_batch)).transpose()?;
        // The name of before TinkerPop 3.4.
        let older = arguments.count("scriptEvaluationTimeout")?;
        let timeout = arguments.count("evaluationTimeout")?.or(older);
        Ok(Self {
            aliases,
            batch_size,
            evaluation_timeout: timeout.map(|millis| match millis {
                0 => Duration::MAX,
                millis => Duration::from_millis(millis),
            }),
            materialize_properties: materialize_properties(arguments)?,
            user_agent: arguments.text("userAgent")?,
        })
    }
}

fn no_batch() -> GremlinError {
    GremlinError::bad("the argument \"batchSize\" is 0; a message has at least one result")
}

fn materialize_properties(arguments: &mut Arguments) -> Result<Option<bool>> {
    match arguments.text("materializeProperties")?.as_deref() {
        None => Ok(None),
        Some("all") => Ok(Some(true)),
        Some("tokens") => Ok(Some(false)),
        Some(other) => Err(GremlinError::bad(format!(
            "the argument \"materializeProperties\" is {other:?}; it can be \"all\" or \"tokens\""
        ))),
    }
}
