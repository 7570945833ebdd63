//! The query for a member's second-degree network, which the cache may answer.

use super::NetworkAnswer;
use crate::{
    GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::{Machine, ask::NETWORK},
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
