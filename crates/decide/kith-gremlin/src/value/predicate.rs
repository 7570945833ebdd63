//! Predicates (`P` and `TextP`) as drivers send them.

use crate::value::Value;
use std::sync::Arc;

/// A predicate. Its operator is not checked before a traversal is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Predicate {
    /// The operator: `eq`, `within`, `containing` … or `and`, `or`, `not`, whose operands are predicates.
    pub operator: Arc<str>,
    /// The operands. `within` and `without` have all their values here, or one list or set of them; `between`, `inside` and
    /// `outside` have two.
    pub operands: Vec<Value>,
}

impl Predicate {
    /// Whether it is a `TextP`, which compares the characters of strings.
    pub fn is_of_text(&self) -> bool {
        matches!(
            &*self.operator,
            "startingWith"
                | "notStartingWith"
                | "endingWith"
                | "notEndingWith"
                | "containing"
                | "notContaining"
                | "regex"
                | "notRegex"
        )
    }
}
