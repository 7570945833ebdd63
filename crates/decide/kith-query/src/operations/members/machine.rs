//! The state machine of `members`: one list of the entity.

use super::MembersQuery;
use crate::{
    OperationError,
    operations::machine::{HasMachine, Machine, first_degree::FirstDegree, resolve::Resolver},
};
use kith_types::Direction;

impl HasMachine for MembersQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        let edge = names.entity(&self.kind, Direction::In)?;
        Ok(Box::new(FirstDegree::members(self.entity, edge)))
    }
}
