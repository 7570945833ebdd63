//! Objects by id (TAO §3.3).

use super::ObjectGetQuery;
use crate::{
    GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::{
        limits::OBJECT_IDS_MAX,
        machine::{
            HasMachine, Machine,
            ask::{ask, distinct},
            range::within,
            resolve::Resolver,
        },
    },
};
use kith_operators::{GRAPH_BYTES_MAX, ObjectEntry, Operator, Value};
use kith_schema::live::{ObjectAnswer, ObjectFields};
use kith_types::FanOutKind;

const OBJECTS: &str = "objects";
const WITH_DATA: Operator = Operator::Objects(ObjectFields::All);

/// A query for objects under way.
#[derive(Debug)]
pub(crate) struct Objects {
    ids: Vec<u64>,
    /// The requested ids, ascending and distinct.
    distinct: Vec<u64>,
    is_single: bool,
}

impl Objects {
    pub(super) fn new(ids: &[u64], is_single: bool) -> Result<Self, OperationError> {
        let most = u64::try_from(OBJECT_IDS_MAX).unwrap_or(u64::MAX);
        match is_single {
            true => within("the number of ids", ids.len() as u64, 1, 1, "1")?,
            false => within("the number of ids", ids.len() as u64, 0, most, "at most 100000")?,
        }
        Ok(Self { ids: ids.to_vec(), distinct: distinct(ids), is_single })
    }
}

impl HasMachine for ObjectGetQuery {
    fn machine(&self, _: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(Objects::new(&self.ids, self.is_single)?))
    }
}

impl Machine for Objects {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match input {
            Input::Start if self.ids.is_empty() => Ok(OperationStep::Done(GraphAnswer::Objects(Vec::new()))),
            Input::Start => Ok(ask(OBJECTS, FanOutKind::NonUnion, self.distinct.clone(), WITH_DATA)),
            Input::Value(Value::Objects(entries)) if entries.len() == self.distinct.len() => {
                let object = |id: &u64| match entries.get(self.distinct.binary_search(id).ok()?)? {
                    ObjectEntry::Found(object) => Some(object),
                    ObjectEntry::Absent | ObjectEntry::Unanswered => None,
                };
                let objects = self.ids.iter().map(object);
                // Each repetition of an id is another copy of its object.
                let sizes = objects.clone().flatten().map(|object| object.data.len());
                if GRAPH_BYTES_MAX < sizes.fold(0, usize::saturating_add) {
                    return Err(OperationError::TooLarge { max: GRAPH_BYTES_MAX });
                }
                let mut objects = objects.map(Option::<&ObjectAnswer>::cloned);
                Ok(OperationStep::Done(match self.is_single {
                    true => GraphAnswer::Object(objects.next().flatten()),
                    false => GraphAnswer::Objects(objects.collect()),
                }))
            }
            _ => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let reach = if self.is_single { "the object" } else { "the objects" };
        vec![Outline { purpose: OBJECTS, kind: Some(FanOutKind::NonUnion), reach, when: "" }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FanOut, Scope};

    fn object(id: u64) -> ObjectAnswer {
        ObjectAnswer { id, kind: "user".to_owned(), version: 4, data: "{}".to_owned(), text_id: None }
    }

    fn asked(step: Result<OperationStep, OperationError>) -> FanOut {
        match step {
            Ok(OperationStep::FanOut(fan_out)) => fan_out,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_id_is_asked_once_and_answered_as_often_as_it_was_named() {
        let mut machine = Objects::new(&[9, 4, 9, 7], false).expect("few ids");
        let fan_out = asked(machine.step(Input::Start));
        assert_eq!((fan_out.scope, fan_out.plan), (Scope::Keys(vec![4, 7, 9]), WITH_DATA));
        let entries = vec![ObjectEntry::Absent, ObjectEntry::Unanswered, ObjectEntry::Found(object(9))];
        let answer = machine.step(Input::Value(Value::Objects(entries)));
        let objects = vec![Some(object(9)), None, Some(object(9)), None];
        assert_eq!(answer, Ok(OperationStep::Done(GraphAnswer::Objects(objects))));
    }

    #[test]
    fn repeats_of_a_large_object_are_bounded() {
        let mut machine = Objects::new(&[9; 65], false).expect("few ids");
        let large = ObjectAnswer { data: "x".repeat(1 << 20), ..object(9) };
        let answer = machine.step(Input::Value(Value::Objects(vec![ObjectEntry::Found(large)])));
        assert_eq!(answer, Err(OperationError::TooLarge { max: GRAPH_BYTES_MAX }));
    }

    #[test]
    fn a_single_object_is_answered_by_itself() {
        let mut machine = Objects::new(&[9], true).expect("one id");
        assert_eq!(asked(machine.step(Input::Start)).kind, FanOutKind::SingleKey);
        let answer = machine.step(Input::Value(Value::Objects(vec![ObjectEntry::Found(object(9))])));
        assert_eq!(answer, Ok(OperationStep::Done(GraphAnswer::Object(Some(object(9))))));
        assert!(Objects::new(&[], true).is_err() && Objects::new(&[1, 2], true).is_err());
    }

    #[test]
    fn too_many_objects_are_refused_and_none_are_answered_without_asking() {
        let answer = Objects::new(&[], false).expect("no ids").step(Input::Start);
        assert_eq!(answer, Ok(OperationStep::Done(GraphAnswer::Objects(vec![]))));
        let refused =
            |error: OperationError| matches!(error, OperationError::OutOfRange { got: 100_001, .. });
        assert!(Objects::new(&[1; OBJECT_IDS_MAX + 1], false).is_err_and(refused));
    }
}
