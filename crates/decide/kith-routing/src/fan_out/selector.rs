//! Selectors, which choose the fan-outs that a controller decides about: by operation, kind or workflow, or by several of
//! these. They are written `OPERATION`, `KIND` or `OPERATION:KIND`, each optionally followed by `@WORKFLOW`; or `@WORKFLOW`
//! alone.

use super::QueryShape;
use kith_types::{FanOutKind, OperationName, Workflow};
use std::fmt;
use thiserror::Error;

/// Selects fan-outs. A field that is `None` matches everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    /// The operation that makes the fan-out.
    pub operation: Option<OperationName>,
    /// The kind of fan-out.
    pub kind: Option<FanOutKind>,
    /// The workflow, which says who waits for the result.
    pub workflow: Option<Workflow>,
}

impl From<FanOutKind> for Selector {
    fn from(kind: FanOutKind) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }
}

/// The reason why a text is not a selector.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorError {
    /// There is no such operation, kind or workflow.
    #[error("selector {selector:?}: there is no {what} {part:?}; {known}")]
    Unknown {
        /// The whole text.
        selector: String,
        /// The kind of the name.
        what: &'static str,
        /// The unknown name, as written.
        part: String,
        /// The known names.
        known: String,
    },
    /// There are no fan-outs of this kind in this workflow.
    #[error(
        "selector {selector:?} selects nothing: a union of the interactive workflow is sync-union, one of the \
         background workflow is async-union"
    )]
    Nothing {
        /// The whole text.
        selector: String,
    },
}

impl Selector {
    /// Returns all selectors that match a fan-out, the most specific one first. Selectors with the operation come before
    /// those without it; among equal ones, those with the kind come first, then those with the workflow.
    pub fn matching(query: &QueryShape) -> [Self; 7] {
        let select = |operation: bool, kind: bool, workflow: bool| Self {
            operation: operation.then_some(query.operation),
            kind: kind.then_some(query.kind),
            workflow: workflow.then_some(query.workflow),
        };
        [
            select(true, true, true),
            select(true, true, false),
            select(true, false, true),
            select(true, false, false),
            select(false, true, true),
            select(false, true, false),
            select(false, false, true),
        ]
    }
}

impl Selector {
    /// Reads a selector, which may name one of these operations.
    ///
    /// # Errors
    /// If it names something unknown, or selects nothing.
    pub fn parse(text: &str, known_operations: &[OperationName]) -> Result<Self, SelectorError> {
        let operation_named =
            |name: &str| known_operations.iter().copied().find(|operation| operation.name() == name);
        let unknown = |what: &'static str, part: &str, known: String| SelectorError::Unknown {
            selector: text.to_owned(),
            what,
            part: part.to_owned(),
            known,
        };
        let operations = || {
            let names: Vec<&str> = known_operations.iter().map(|operation| operation.name()).collect();
            format!("operations: {}", names.join(", "))
        };
        let known_kinds = || format!("kinds: {}", FanOutKind::names());
        let (what, workflow) = match text.split_once('@') {
            Some((what, workflow)) => (what, Some(workflow)),
            None => (text, None),
        };
        let mut selector = Self::default();
        if let Some(name) = workflow {
            let known = || format!("workflows: {}", Workflow::ALL.map(Workflow::name).join(", "));
            let workflow = Workflow::ALL.into_iter().find(|workflow| workflow.name() == name);
            selector.workflow = Some(workflow.ok_or_else(|| unknown("workflow", name, known()))?);
        }
        match what.split_once(':') {
            Some((operation, kind)) => {
                let known = operation_named(operation);
                selector.operation =
                    Some(known.ok_or_else(|| unknown("operation", operation, operations()))?);
                let known = FanOutKind::by_name(kind);
                selector.kind = Some(known.ok_or_else(|| unknown("kind of fan-out", kind, known_kinds()))?);
            }
            None if what.is_empty() && workflow.is_some() => {}
            None => {
                (selector.operation, selector.kind) = (operation_named(what), FanOutKind::by_name(what));
                if selector.operation.is_none() && selector.kind.is_none() {
                    let known = format!("{}; {}", operations(), known_kinds());
                    return Err(unknown("operation or kind of fan-out", what, known));
                }
            }
        }
        if let (Some(kind), Some(workflow)) = (selector.kind, selector.workflow)
            && !kind.is_made_in(workflow)
        {
            return Err(SelectorError::Nothing { selector: text.to_owned() });
        }
        Ok(selector)
    }
}

impl fmt::Display for Selector {
    /// The format that [`Selector::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation.map_or("", OperationName::name))?;
        if self.operation.is_some() && self.kind.is_some() {
            f.write_str(":")?;
        }
        f.write_str(self.kind.map_or("", FanOutKind::name))?;
        self.workflow.map_or(Ok(()), |workflow| write!(f, "@{}", workflow.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::Timestamp;

    const NETWORK: OperationName = OperationName::new("network");
    const OPERATIONS: [OperationName; 3] = [OperationName::new("connections"), NETWORK, OperationName::MGET];

    fn query(operation: OperationName, kind: FanOutKind, workflow: Workflow) -> QueryShape {
        QueryShape { operation, kind, workflow, keys: 1, groups: 1, nodes_per_group: 1, now: Timestamp::ZERO }
    }

    #[test]
    fn the_most_specific_selector_comes_first() {
        let query = query(NETWORK, FanOutKind::AsyncUnion, Workflow::Background);
        let texts = Selector::matching(&query).map(|selector| selector.to_string());
        let expected = [
            "network:async-union@background",
            "network:async-union",
            "network@background",
            "network",
            "async-union@background",
            "async-union",
            "@background",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn selectors_are_read_as_they_are_printed() {
        for operation in OPERATIONS {
            for kind in FanOutKind::ALL {
                for workflow in Workflow::ALL.into_iter().filter(|workflow| kind.is_made_in(*workflow)) {
                    for selector in Selector::matching(&query(operation, kind, workflow)) {
                        assert_eq!(Selector::parse(&selector.to_string(), &OPERATIONS), Ok(selector));
                    }
                }
            }
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = |text: &str| Selector::parse(text, &OPERATIONS).expect_err(text).to_string();
        for text in ["netwrk", "", "network-size", "Network", " network", "*"] {
            let message = error(text);
            assert!(
                message
                    .contains(&format!("no operation or kind of fan-out {text:?}; operations: connections,"))
            );
            assert!(message.contains("; kinds: single-key, non-union"), "{message}");
        }
        assert!(error("sync-union:network").contains("no operation \"sync-union\"; operations: connections"));
        assert!(error("network:").contains("no kind of fan-out \"\"; kinds: single-key"));
        assert!(error(":sync-union").contains("no operation \"\"; operations: connections"));
        let message = error("network@nightly");
        assert_eq!(
            message,
            "selector \"network@nightly\": there is no workflow \"nightly\"; workflows: interactive, background"
        );
        assert!(error("@").contains("workflows: interactive, background"));
        for text in ["sync-union@background", "network:sync-union@background", "async-union@interactive"] {
            assert!(error(text).contains("selects nothing"), "{text}: {}", error(text));
        }
    }
}
