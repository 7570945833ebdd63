//! Single-key look-ups (Moolle §II-C): connections, entities of a member, members of an entity.

use super::{
    Machine,
    ask::{FIRST_DEGREE, ask_list, list_of},
};
use crate::{GraphAnswer, Input, OperationError, OperationStep, Outline};
use kith_schema::EdgeSelector;
use kith_types::FanOutKind;

/// A query for one list of one key.
#[derive(Clone, Debug)]
pub(crate) struct FirstDegree {
    id: u64,
    edge: EdgeSelector,
    purpose: &'static str,
    /// Whether the key is an entity, which only its members' lists name.
    of_entity: bool,
}

impl FirstDegree {
    pub(in crate::operations) fn connections(id: u64, edge: EdgeSelector) -> Self {
        Self { id, edge, purpose: FIRST_DEGREE, of_entity: false }
    }

    pub(in crate::operations) fn entities(id: u64, edge: EdgeSelector) -> Self {
        Self { id, edge, purpose: "entities", of_entity: false }
    }

    pub(in crate::operations) fn members(entity: u64, edge: EdgeSelector) -> Self {
        Self { id: entity, edge, purpose: "members", of_entity: true }
    }
}

impl Machine for FirstDegree {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        if input == Input::Start {
            return Ok(ask_list(self.purpose, self.id, &self.edge));
        }
        match list_of(self.id, input) {
            Err(OperationError::MemberNotFound { id }) if self.of_entity => {
                Err(OperationError::EntityNotFound { kind: self.edge.kind.clone(), entity: id })
            }
            list => Ok(OperationStep::Done(GraphAnswer::Ids(list?))),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let reach = if self.of_entity { "the entity" } else { "the member" };
        vec![Outline { purpose: self.purpose, kind: Some(FanOutKind::SingleKey), reach, when: "" }]
    }
}
