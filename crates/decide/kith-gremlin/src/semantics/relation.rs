//! Predicates whose operands are known only when a traversal runs, as in `where(eq("a"))`.

use super::{Test, compare::compare, equality::equal};
use crate::{Result, predicate::Predicate, value::Value};
use std::{cmp::Ordering, sync::Arc};

/// The verdict of a predicate about a value and its operands. The usual predicates with one operand are decided without compiling
/// a [`Test`] for each value.
#[derive(Clone, Debug)]
pub struct Relation(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Equal(bool),
    Order(fn(Ordering) -> bool),
    Other(Arc<str>),
}

/// The test of the operands that were asked for last: many values are often compared with the same ones.
#[derive(Debug, Default)]
pub struct LastTest {
    last: Option<(Vec<Value>, Test)>,
    /// The work of compiling all tests until now.
    pub effort: u64,
}

impl Relation {
    /// The relation with the name of a predicate. An unknown name is an error when it is asked.
    pub fn new(operator: &Arc<str>) -> Self {
        Self(match &**operator {
            "eq" => Kind::Equal(true),
            "neq" => Kind::Equal(false),
            "gt" => Kind::Order(Ordering::is_gt),
            "gte" => Kind::Order(Ordering::is_ge),
            "lt" => Kind::Order(Ordering::is_lt),
            "lte" => Kind::Order(Ordering::is_le),
            _ => Kind::Other(operator.clone()),
        })
    }

    /// Whether it holds of a value and these operands. `last` is kept from value to value.
    ///
    /// # Errors
    /// As [`Test::compile`].
    pub fn holds(&self, value: &Value, operands: Vec<Value>, last: &mut LastTest) -> Result<bool> {
        match (&self.0, &operands[..]) {
            (Kind::Equal(is_equal), [operand]) => Ok(equal(value, operand) == *is_equal),
            (Kind::Order(holds), [operand]) => Ok(compare(value, operand).is_some_and(holds)),
            _ => {
                let known = last.last.take().filter(|(known, _)| are_same(known, &operands));
                let (operands, test) = match known {
                    Some(known) => known,
                    None => {
                        let predicate = Predicate { operator: self.operator(), operands: operands.clone() };
                        let test = Test::compile(&predicate)?;
                        last.effort += test.effort_to_compile();
                        (operands, test)
                    }
                };
                let holds = test.is_true(value);
                last.effort += test.effort(value);
                last.last = Some((operands, test));
                Ok(holds)
            }
        }
    }

    fn operator(&self) -> Arc<str> {
        match &self.0 {
            Kind::Equal(true) => "eq".into(),
            Kind::Equal(false) => "neq".into(),
            // Reached with a wrong number of operands only, which is an error whatever the order.
            Kind::Order(_) => "lt".into(),
            Kind::Other(operator) => operator.clone(),
        }
    }
}

/// Whether operands are certainly equal. Large collections are compared by their place in memory.
fn are_same(a: &[Value], b: &[Value]) -> bool {
    let is_same = |(a, b): (&Value, &Value)| match (a, b) {
        (Value::List(a), Value::List(b)) => Arc::ptr_eq(a, b),
        (Value::Set(a), Value::Set(b)) => Arc::ptr_eq(a, b),
        (Value::BulkSet(a), Value::BulkSet(b)) => Arc::ptr_eq(a, b),
        (a, b) => a == b,
    };
    a.len() == b.len() && a.iter().zip(b).all(is_same)
}
