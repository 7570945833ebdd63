//! The ids of objects that have one of some values in a field with an index.

use super::ObjectFindQuery;
use crate::{
    FanOut, GraphAnswer, Input, OperationError, OperationStep, Outline, Scope,
    operations::{
        limits::{FIND_IDS_MAX, FIND_VALUES_MAX},
        machine::{HasMachine, Machine, ask::set_of, range::within, resolve::Resolver},
    },
};
use kith_operators::Operator;
use kith_schema::live::ObjectFind;
use kith_types::FanOutKind;

const FIND: &str = "index";

/// A query for the ids of objects with certain values under way.
#[derive(Debug)]
pub(crate) struct Find(ObjectFind);

impl Find {
    pub(super) fn new(find: &ObjectFind) -> Result<Self, OperationError> {
        let most = u64::try_from(FIND_VALUES_MAX).unwrap_or(u64::MAX);
        within("the number of values", find.values.len() as u64, 1, most, "1 to 1000")?;
        if let Some(limit) = find.limit {
            within("the limit", limit, 1, FIND_IDS_MAX, "1 to 100000")?;
        }
        Ok(Self(find.clone()))
    }
}

impl HasMachine for ObjectFindQuery {
    fn machine(&self, _: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(Find::new(&self.find())?))
    }
}

impl Machine for Find {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        if let Input::Start = input {
            // Without a limit, one id too many shows that there are too many.
            let limit = self.0.limit.or(Some(FIND_IDS_MAX + 1));
            let plan = Operator::Find(Box::new(ObjectFind { limit, ..self.0.clone() }));
            let (purpose, kind, scope) = (FIND, FanOutKind::Broadcast, Scope::Partitions);
            return Ok(OperationStep::FanOut(FanOut { purpose, kind, scope, plan }));
        }
        let mut ids = set_of(input)?;
        match self.0.limit {
            Some(limit) => ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX)),
            None => {
                let wanted = "at most 100000: give a limit, and ask for one page after the other";
                within("the number of objects found", ids.len() as u64, 0, FIND_IDS_MAX, wanted)?;
            }
        }
        Ok(OperationStep::Done(GraphAnswer::Ids(ids)))
    }

    fn outline(&self) -> Vec<Outline> {
        let (kind, reach) = (Some(FanOutKind::Broadcast), "every partition");
        vec![Outline { purpose: FIND, kind, reach, when: "" }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_operators::Value;

    fn asked(step: Result<OperationStep, OperationError>) -> FanOut {
        match step {
            Ok(OperationStep::FanOut(fan_out)) => fan_out,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ids_with_a_value_are_asked_of_every_partition_and_cut_to_the_limit() {
        let find = |limit, values: usize| ObjectFind {
            limit,
            values: vec!["1".into(); values],
            ..Default::default()
        };
        let mut machine = Find::new(&find(Some(2), 1)).expect("a good query");
        let fan_out = asked(machine.step(Input::Start));
        assert_eq!((fan_out.scope, fan_out.kind), (Scope::Partitions, FanOutKind::Broadcast));
        assert_eq!(fan_out.plan, Operator::Find(Box::new(find(Some(2), 1))));
        let set = |ids| Input::Value(Value::Set(ids));
        assert_eq!(machine.step(set(vec![3, 5, 9])), Ok(OperationStep::Done(GraphAnswer::Ids(vec![3, 5]))));
        let mut whole = Find::new(&find(None, 1)).expect("a good query");
        assert_eq!(asked(whole.step(Input::Start)).plan, Operator::Find(Box::new(find(Some(100_001), 1))));
        let refused = whole.step(set((0..100_001).collect()));
        assert!(matches!(refused, Err(OperationError::OutOfRange { got: 100_001, .. })), "{refused:?}");
        for wrong in [find(Some(0), 1), find(Some(100_001), 1), find(None, 0), find(None, 1_001)] {
            assert!(Find::new(&wrong).is_err(), "{:?} {}", wrong.limit, wrong.values.len());
        }
    }
}
