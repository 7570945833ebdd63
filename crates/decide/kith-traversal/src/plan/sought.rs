//! Vertices that an index may find.

use super::{Condition, HasTest, TestedPart};
use crate::{
    graph::VertexSearch,
    value::{Token, Value},
};
use std::sync::Arc;

/// What an index may be asked for of the vertices that pass these tests.
pub(super) fn search<'a>(tests: impl Iterator<Item = &'a HasTest>) -> Option<VertexSearch> {
    let mut sought = VertexSearch { labels: Vec::new(), properties: Vec::new(), latest: false };
    for HasTest { subject, condition } in tests {
        let Condition::Test(test) = condition else { continue };
        match (subject, test.equal_value()) {
            (TestedPart::Token(Token::Label), Some(Value::String(label))) => {
                sought.labels = vec![Arc::clone(label)];
            }
            (TestedPart::Property(key), Some(value)) if *value != Value::Null => {
                sought.properties.push((Arc::clone(key), value.clone()));
            }
            _ => {}
        }
    }
    (!sought.properties.is_empty()).then_some(sought)
}
