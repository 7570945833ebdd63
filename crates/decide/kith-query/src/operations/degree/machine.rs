//! The number of connections of members. Without a filter, nodes answer from the counts at the beginning of their lists.

use super::DegreeQuery;
use crate::{
    GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::{
        limits::DEGREE_IDS_MAX,
        machine::{
            HasMachine, Machine,
            ask::{ask, expand},
            resolve::Resolver,
        },
    },
};
use kith_operators::{ListEntry, Operator, Value};
use kith_schema::EdgeSelector;
use kith_types::FanOutKind;

const DEGREES: &str = "degrees";

/// A degree query under way.
#[derive(Debug)]
pub(crate) struct Degree {
    ids: Vec<u64>,
    /// The requested ids, ascending and distinct.
    distinct: Vec<u64>,
    edge: EdgeSelector,
}

impl Degree {
    pub(super) fn new(ids: &[u64], edge: EdgeSelector) -> Result<Self, OperationError> {
        if DEGREE_IDS_MAX < ids.len() {
            let (what, range) = ("the number of members", "at most 100000");
            return Err(OperationError::OutOfRange { what, got: ids.len() as u64, range });
        }
        let mut distinct = ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        Ok(Self { ids: ids.to_vec(), distinct, edge })
    }
}

impl HasMachine for DegreeQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        let edge = names.filtered(names.edge()?, self.filter.as_ref())?;
        Ok(Box::new(Degree::new(&self.ids, edge)?))
    }
}

impl Machine for Degree {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match input {
            Input::Start if self.ids.is_empty() => Ok(OperationStep::Done(GraphAnswer::Degrees(Vec::new()))),
            Input::Start => {
                let plan = Operator::Count(Box::new(expand(&self.edge, 0)));
                Ok(ask(DEGREES, FanOutKind::NonUnion, self.distinct.clone(), plan))
            }
            Input::Value(Value::Lists(lengths)) if lengths.len() == self.distinct.len() => {
                let degree = |id: &u64| match lengths.get(self.distinct.binary_search(id).ok()?)? {
                    ListEntry::Longer(length) => Some(*length),
                    ListEntry::Ids(ids) => Some(ids.len() as u64),
                    ListEntry::NotInGraph | ListEntry::Unanswered => None,
                };
                Ok(OperationStep::Done(GraphAnswer::Degrees(self.ids.iter().map(degree).collect())))
            }
            _ => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        vec![Outline { purpose: DEGREES, kind: Some(FanOutKind::NonUnion), reach: "the members", when: "" }]
    }
}
