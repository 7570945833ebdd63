//! Whether two members share anything: a common connection of any edge type, or a common entity of any kind.
//!
//! The kinds are asked one after the other, in the order in which they were loaded, and the first match ends the search. So
//! the fan-out at any time is that of a query for one kind.

use super::{Common, CommonAnswer};
use crate::{GraphAnswer, Input, OperationError, OperationStep, Outline, operations::machine::Machine};

/// A query over all kinds under way.
#[derive(Clone, Debug)]
pub(crate) struct AnyCommon {
    current: Common,
    /// The queries that follow if there is no match; the last one is the next.
    rest: Vec<Common>,
}

impl AnyCommon {
    /// Begins with the first of `queries`, each of which asks whether anything exists; `None` if there is none.
    pub(super) fn new(mut queries: Vec<Common>) -> Option<Self> {
        queries.reverse();
        Some(Self { current: queries.pop()?, rest: queries })
    }
}

impl Machine for AnyCommon {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        let step = self.current.step(input)?;
        if !matches!(step, OperationStep::Done(GraphAnswer::Common(CommonAnswer::Exists(false)))) {
            return Ok(step);
        }
        match self.rest.pop() {
            None => Ok(step),
            Some(next) => {
                self.current = next;
                Ok(self.current.start())
            }
        }
    }

    fn outline(&self) -> Vec<Outline> {
        std::iter::once(&self.current).chain(self.rest.iter().rev()).flat_map(Common::outline).collect()
    }
}
