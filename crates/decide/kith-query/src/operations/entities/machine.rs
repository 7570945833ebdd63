//! The state machine of `entities`: one list of the member.

use super::EntitiesQuery;
use crate::{
    OperationError,
    operations::machine::{HasMachine, Machine, first_degree::FirstDegree, resolve::Resolver},
};
use kith_types::Direction;

impl HasMachine for EntitiesQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        let edge = names.entity(&self.kind, Direction::Out)?;
        Ok(Box::new(FirstDegree::entities(self.id, edge)))
    }
}
