//! The query for a member's second-degree network, which the cache may answer.

mod fetch;
mod plan;

pub(in crate::operations) use fetch::NetworkFetch;
pub use plan::NetworkPlan;

use super::{NetworkAnswer, NetworkQuery};
use crate::{
    GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::machine::{HasMachine, Machine, ask::NETWORK, resolve::Resolver},
};
use kith_operators::{Network, NetworkKey};
use std::sync::Arc;

/// The query. Its driver may answer it from the cache.
#[derive(Debug)]
pub(super) struct CachedNetwork {
    pub(super) key: NetworkKey,
    /// Whether the ids are requested besides the sizes.
    pub(super) with_ids: bool,
}

impl HasMachine for NetworkQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(CachedNetwork { key: names.key(self.id)?, with_ids: self.returns.needs_ids() }))
    }
}

impl Machine for CachedNetwork {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match input {
            Input::Start => Ok(OperationStep::Network(self.key.clone())),
            Input::Network(network) => Ok(OperationStep::Done(answer(network, self.with_ids))),
            Input::Value(_) => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        vec![NETWORK]
    }
}

pub(super) fn answer(network: Arc<Network>, with_ids: bool) -> GraphAnswer {
    let (id, sizes) = (network.id(), network.sizes());
    let network = with_ids.then_some(network);
    GraphAnswer::Network(NetworkAnswer { id, sizes, network })
}
