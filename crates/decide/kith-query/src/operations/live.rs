//! Reads of a live graph: objects by id, and associations of one list (TAO §3.3, §3.4).

use super::{
    ask::{ask, set_of},
    limits::{ASSOCIATION_IDS_MAX, FIND_IDS_MAX, FIND_VALUES_MAX, OBJECT_IDS_MAX, within},
};
use crate::{AssociationsAnswer, FanOut, GraphAnswer, Input, OperationError, OperationStep, Outline, Scope};
use kith_live::{AssociationAnswer, AssociationRead, INDEX_MAX, ObjectAnswer, ObjectFind, Select, Start};
use kith_operators::{AssociationsEntry, GRAPH_BYTES_MAX, ObjectEntry, Operator, Value};
use kith_types::FanOutKind;

const OBJECTS: &str = "objects";
const WITH_DATA: Operator = Operator::Objects { with_data: true };
const ASSOCIATIONS: &str = "associations";
const FIND: &str = "index";

/// A query for objects under way.
#[derive(Clone, Debug)]
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

    pub(super) fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
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

    pub(super) fn outline(&self) -> Vec<Outline> {
        let reach = if self.is_single { "the object" } else { "the objects" };
        vec![Outline { purpose: OBJECTS, kind: Some(FanOutKind::NonUnion), reach, when: "" }]
    }
}

/// A query for the ids of objects with certain values under way.
#[derive(Clone, Debug)]
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

    pub(super) fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
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

    pub(super) fn outline() -> Vec<Outline> {
        let (kind, reach) = (Some(FanOutKind::Broadcast), "every partition");
        vec![Outline { purpose: FIND, kind, reach, when: "" }]
    }
}

/// A query for associations under way.
#[derive(Clone, Debug)]
pub(crate) struct Associations {
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

    pub(super) fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match (input, &self.read.select) {
            (Input::Start, _) => {
                let plan = Operator::Associations(vec![self.read.clone()]);
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

    pub(super) fn outline(&self) -> Vec<Outline> {
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

fn distinct(ids: &[u64]) -> Vec<u64> {
    let mut distinct = ids.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FanOut, Scope};
    use kith_live::{ListedAssociation, Start};

    fn object(id: u64) -> ObjectAnswer {
        ObjectAnswer { id, kind: "user".to_owned(), version: 4, data: "{}".to_owned() }
    }

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
    fn no_objects_are_answered_without_asking_but_nodes_check_the_type_of_associations() {
        let answer = Objects::new(&[], false).expect("no ids").step(Input::Start);
        assert_eq!(answer, Ok(OperationStep::Done(GraphAnswer::Objects(vec![]))));
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
        let many = vec![1; OBJECT_IDS_MAX + 1];
        let refused =
            |error: OperationError| matches!(error, OperationError::OutOfRange { got: 100_001, .. });
        assert!(Objects::new(&many, false).is_err_and(refused));
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
