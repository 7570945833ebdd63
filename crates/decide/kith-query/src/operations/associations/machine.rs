//! Associations of one list (TAO §3.4).

use super::{AssociationsAnswer, ListFields};
use crate::{
    GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::{
        limits::ASSOCIATION_IDS_MAX,
        machine::{
            HasMachine, Machine,
            ask::{ask, distinct},
            range::within,
            resolve::Resolver,
        },
    },
};
use kith_operators::{AssociationsEntry, Operator, Value};
use kith_schema::live::{AssociationAnswer, AssociationRead, AssociationsPlan, INDEX_MAX, Select, Start};
use kith_types::FanOutKind;

const ASSOCIATIONS: &str = "associations";

/// A query for associations under way.
#[derive(Debug)]
pub(super) struct Associations {
    id1: u64,
    read: AssociationRead,
}

impl Associations {
    pub(super) fn new(id1: u64, read: &AssociationRead) -> Result<Self, OperationError> {
        let mut read = read.clone();
        match &mut read.select {
            Select::Ids { ids, .. } => {
                let most = u64::try_from(ASSOCIATION_IDS_MAX).unwrap_or(u64::MAX);
                within("the number of ids", ids.len() as u64, 0, most, "at most 100000")?;
                *ids = distinct(ids);
            }
            Select::Range { limit: Some(0), .. } | Select::Times { limit: Some(0), .. } => {
                within("the limit", 0, 1, u64::MAX, "at least 1")?;
            }
            Select::Range { start: Start::Index(index), .. } => {
                within("pos", *index, 0, INDEX_MAX, "at most 100000")?;
            }
            Select::Count | Select::Range { .. } | Select::Times { .. } => {}
        }
        Ok(Self { id1, read })
    }

    /// The answer if no node answered for the list.
    fn unanswered(&self) -> GraphAnswer {
        match &self.read.select {
            Select::Count => GraphAnswer::AssociationCount(None),
            select => GraphAnswer::Associations(AssociationsAnswer {
                out: Vec::new(),
                more: is_cut(select).then_some(false),
            }),
        }
    }
}

impl<F: ListFields> HasMachine for F {
    fn machine(&self, _: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(Associations::new(self.id1(), &self.read())?))
    }
}

impl Machine for Associations {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match (input, &self.read.select) {
            (Input::Start, _) => {
                let plan = Operator::Associations(Box::new(AssociationsPlan::of(vec![self.read.clone()])));
                Ok(ask(ASSOCIATIONS, FanOutKind::SingleKey, vec![self.id1], plan))
            }
            (Input::Value(Value::Associations(entries)), select) => {
                let Ok([entry]) = <[AssociationsEntry; 1]>::try_from(entries) else {
                    return Err(OperationError::WrongValue);
                };
                let AssociationsEntry::Answer(lists) = entry else {
                    return Ok(OperationStep::Done(self.unanswered()));
                };
                let Ok([answer]) = <[AssociationAnswer; 1]>::try_from(lists) else {
                    return Err(OperationError::WrongValue);
                };
                Ok(OperationStep::Done(match (answer, select) {
                    (AssociationAnswer::Count(count), Select::Count) => {
                        GraphAnswer::AssociationCount(Some(count))
                    }
                    (AssociationAnswer::Count(_), _) | (_, Select::Count) => {
                        return Err(OperationError::WrongValue);
                    }
                    (AssociationAnswer::List { out, more }, select) => {
                        let more = is_cut(select).then_some(more);
                        GraphAnswer::Associations(AssociationsAnswer { out, more })
                    }
                }))
            }
            _ => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let (purpose, kind) = (ASSOCIATIONS, Some(FanOutKind::SingleKey));
        vec![Outline { purpose, kind, reach: "the object", when: "" }]
    }
}

/// Whether a limit may cut off requested associations.
fn is_cut(select: &Select) -> bool {
    match select {
        Select::Range { .. } | Select::Times { .. } => true,
        Select::Ids { .. } | Select::Count => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FanOut, Scope};
    use kith_schema::live::ListedAssociation;

    fn asked(step: Result<OperationStep, OperationError>) -> FanOut {
        match step {
            Ok(OperationStep::FanOut(fan_out)) => fan_out,
            other => panic!("{other:?}"),
        }
    }

    fn read(select: Select) -> AssociationRead {
        AssociationRead { kind: "likes".to_owned(), select, with_data: false, with_versions: false }
    }

    fn list(out: Vec<ListedAssociation>, more: bool) -> Input {
        let answer = AssociationAnswer::List { out, more };
        Input::Value(Value::Associations(vec![AssociationsEntry::Answer(vec![answer])]))
    }

    #[test]
    fn nodes_check_the_type_even_if_no_association_is_named() {
        let none = read(Select::Ids { ids: vec![], high: None, low: None });
        let mut machine = Associations::new(1, &none).expect("no ids");
        assert_eq!(asked(machine.step(Input::Start)).scope, Scope::Keys(vec![1]));
        let empty = AssociationsAnswer { out: vec![], more: None };
        assert_eq!(
            machine.step(list(vec![], false)),
            Ok(OperationStep::Done(GraphAnswer::Associations(empty)))
        );
    }

    #[test]
    fn only_pages_say_whether_more_follows() {
        let one = ListedAssociation { id2: 3, time: 50, data: None, version: None };
        let ids = Select::Ids { ids: vec![3, 8, 3], high: Some(60), low: None };
        let range = Select::Range { start: Start::Index(0), limit: Some(1) };
        for (select, more) in [(ids, None), (range, Some(true))] {
            let mut machine = Associations::new(1, &read(select)).expect("a good read");
            let fan_out = asked(machine.step(Input::Start));
            assert_eq!((fan_out.scope, fan_out.kind), (Scope::Keys(vec![1]), FanOutKind::SingleKey));
            let answer = machine.step(list(vec![one.clone()], true));
            let expected = AssociationsAnswer { out: vec![one.clone()], more };
            assert_eq!(answer, Ok(OperationStep::Done(GraphAnswer::Associations(expected))));
        }
    }

    #[test]
    fn a_count_is_a_number_unless_nobody_answered() {
        let mut machine = Associations::new(1, &read(Select::Count)).expect("a good read");
        let entry = AssociationsEntry::Answer(vec![AssociationAnswer::Count(7)]);
        let counted = machine.step(Input::Value(Value::Associations(vec![entry])));
        assert_eq!(counted, Ok(OperationStep::Done(GraphAnswer::AssociationCount(Some(7)))));
        let unanswered = machine.step(Input::Value(Value::Associations(vec![AssociationsEntry::Unanswered])));
        assert_eq!(unanswered, Ok(OperationStep::Done(GraphAnswer::AssociationCount(None))));
        assert_eq!(machine.step(list(vec![], false)), Err(OperationError::WrongValue));
    }

    #[test]
    fn reads_that_are_too_large_or_empty_are_refused() {
        let many = vec![1; ASSOCIATION_IDS_MAX + 1];
        let refused =
            |error: OperationError| matches!(error, OperationError::OutOfRange { got: 100_001, .. });
        let ids = read(Select::Ids { ids: many, high: None, low: None });
        assert!(Associations::new(1, &ids).is_err_and(refused));
        let none = read(Select::Times { high: None, low: None, limit: Some(0) });
        let refused = |error| matches!(error, OperationError::OutOfRange { what: "the limit", got: 0, .. });
        assert!(Associations::new(1, &none).is_err_and(refused));
        let from = |index| read(Select::Range { start: Start::Index(index), limit: Some(1) });
        assert!(Associations::new(1, &from(INDEX_MAX)).is_ok());
        let refused = |error| matches!(error, OperationError::OutOfRange { what: "pos", got: 100_001, .. });
        assert!(Associations::new(1, &from(INDEX_MAX + 1)).is_err_and(refused));
    }
}
