//! The state machine of `connections`: one list of the member.

use super::ConnectionsQuery;
use crate::{
    OperationError,
    operations::machine::{HasMachine, Machine, first_degree::FirstDegree, resolve::Resolver},
};

impl HasMachine for ConnectionsQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(FirstDegree::connections(self.id, names.edge()?)))
    }
}
