//! Traversals in Gremlin, for `kith gremlin` and the operation `gremlin` of request lines.

use crate::{
    GremlinQuery, GremlinTraversal, QueryOptions,
    gremlin::Traversal,
    line::{error::LineError, json::members, options::ReadOptions},
};
use kith_gremlin::{
    Room,
    bytecode::{Bytecode, Instruction},
    graphbinary, plain, text,
    value::Value as GremlinValue,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The name of the operation in request lines.
pub const GREMLIN: &str = "gremlin";

/// The length in bytes of the part of a traversal that the slow-query log shows.
const SHOWN_BYTES_MAX: usize = 2_000;

/// Longer bytecode is not decoded again only to be shown.
const DECODED_BYTES_MAX: usize = 16 << 10;

/// A traversal and the options of its request.
#[derive(Clone, Debug, PartialEq)]
pub struct GremlinLine {
    /// The graph and the traversal.
    pub fields: GremlinFields,
    /// The options of the request.
    pub options: ReadOptions,
}

/// A traversal. Field names are a contract: `docs/queries.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GremlinFields {
    /// The graph to traverse.
    pub graph: String,
    /// The traversal as text, such as `g.V(42).out().count()`.
    pub gremlin: String,
    /// The values of variables in the text.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub bindings: Map<String, Value>,
}

impl GremlinFields {
    /// The traversal as a query.
    ///
    /// # Errors
    /// `bad_request` if the bindings nest too deep.
    pub fn query(&self) -> Result<GremlinQuery, LineError> {
        let values = plain::map(&self.bindings);
        let writes = text::changes_graph(&self.gremlin, &values);
        let bindings = match values.is_empty() {
            true => Vec::new(),
            false => graphbinary::write_value(&GremlinValue::Map(Arc::new(values)))
                .map_err(|error| LineError::bad_request(format!("bindings: {error}")))?,
        };
        let traversal = GremlinTraversal::Text { text: self.gremlin.clone(), bindings: bindings.into() };
        Ok(GremlinQuery { traversal, with_properties: false, is_explained: false, writes })
    }

    /// The fields that stand for a query. `None` for bytecode, which has no text.
    fn of(graph: &str, query: &GremlinQuery) -> Option<Self> {
        let GremlinTraversal::Text { text, bindings } = &query.traversal else { return None };
        let bindings = match graphbinary::read_value(bindings) {
            Ok(GremlinValue::Map(bindings)) => {
                bindings.iter().map(|(key, value)| (key.to_string(), plain::to_json(value))).collect()
            }
            // Without variables there are no bytes.
            _ => Map::new(),
        };
        Some(Self { graph: graph.to_owned(), gremlin: text.clone(), bindings })
    }
}

/// The JSON object of a traversal's line. `None` for bytecode.
pub(crate) fn gremlin_json(graph: &str, query: &GremlinQuery, options: &QueryOptions) -> Option<Value> {
    let mut line = Map::from_iter([("op".to_owned(), GREMLIN.into())]);
    line.extend(members(&GremlinFields::of(graph, query)?));
    line.extend(members(&ReadOptions::of(options)));
    Some(Value::Object(line))
}

/// A traversal as the slow-query log shows it: at most [`SHOWN_BYTES_MAX`] of its text. Bindings, and the arguments of bytecode,
/// are omitted because they may be long or private.
pub(crate) fn summary(graph: &str, query: &GremlinQuery) -> Value {
    let text = match &query.traversal {
        GremlinTraversal::Text { text, .. } => Some(text.clone()),
        GremlinTraversal::Bytecode(bytes) if DECODED_BYTES_MAX < bytes.len() => {
            Some(format!("bytecode of {} bytes", bytes.len()))
        }
        GremlinTraversal::Bytecode(bytes) => {
            match graphbinary::read_value_within(bytes, &mut Room::alone()) {
                Ok(GremlinValue::Traversal(bytecode)) => Some(names(&bytecode)),
                _ => None,
            }
        }
        GremlinTraversal::Decoded(decoded) => {
            decoded.value().map(|traversal: &Traversal| names(&traversal.bytecode))
        }
    };
    json!({"op": GREMLIN, "graph": graph, "gremlin": text.map(shortened)})
}

/// The steps of a traversal without their arguments, such as `g.V(…).out(…).count()`.
fn names(bytecode: &Bytecode) -> String {
    let step = |it: &Instruction| format!(".{}({})", it.name, if it.arguments.is_empty() { "" } else { "…" });
    format!("g{}", bytecode.steps.iter().map(step).collect::<String>())
}

fn shortened(mut text: String) -> String {
    let bytes = text.len();
    if SHOWN_BYTES_MAX < bytes {
        let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push_str(&format!("… ({bytes} bytes)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_gremlin::value::Map as GremlinMap;

    fn shown(traversal: GremlinTraversal) -> String {
        let query = GremlinQuery { traversal, with_properties: false, is_explained: false, writes: false };
        summary("g", &query)["gremlin"].as_str().expect("text").to_owned()
    }

    #[test]
    fn the_slow_query_log_shows_which_steps_bytecode_has_and_no_values() {
        let bindings = GremlinMap::default();
        let inputs = text::Inputs { bindings: &bindings, now: Default::default(), entropy: 7 };
        let script = text::parse("g.V(7).has('name', 'Ada').out()", &inputs).expect("it can be read");
        let bytes = graphbinary::write_value(&GremlinValue::Traversal(Arc::new(script.bytecode)));
        let traversal = GremlinTraversal::Bytecode(bytes.expect("it can be written").into());
        assert_eq!(shown(traversal), "g.V(…).has(…).out()");
    }

    #[test]
    fn the_slow_query_log_shows_the_beginning_of_a_long_traversal() {
        let shown =
            |text: &str| shown(GremlinTraversal::Text { text: text.to_owned(), bindings: Vec::new().into() });
        assert_eq!(shown("g.V().count()"), "g.V().count()");
        let long = format!("g.inject('{}')", "é".repeat(SHOWN_BYTES_MAX));
        let bytecode = GremlinTraversal::Bytecode(vec![0; DECODED_BYTES_MAX + 1].into());
        assert_eq!(super::tests::shown(bytecode), "bytecode of 16385 bytes");
        assert_eq!(shown(&long), format!("{}… ({} bytes)", &long[..SHOWN_BYTES_MAX], long.len()));
    }
}
