//! The members that a member follows and that follow it. The node of the member has both lists, so it intersects them. It
//! returns up to one id more than the answer may have. That id shows that the answer is truncated.

use super::{LIMIT_MAX, ReciprocalAnswer, ReciprocalQuery};
use crate::{
    GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::machine::{
        HasMachine, Machine,
        ask::{ask, expand, lists_of, set_of, union},
        range::within,
        resolve::Resolver,
    },
};
use kith_operators::Operator;
use kith_schema::{EdgeSelector, KindRole};
use kith_types::{Direction, FanOutKind};

const BOTH_WAYS: &str = "intersection of both directions";
const EXISTENCE: &str = "existence of the member";
/// The default number of ids.
const LIMIT: u64 = 1_000;

/// A query for reciprocal edges under way.
#[derive(Debug)]
pub(crate) struct Reciprocal {
    id: u64,
    edge: EdgeSelector,
    /// The directions whose lists must have an id. An edge of an undirected type leads both ways, and is in the only list.
    directions: &'static [Direction],
    limit: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Start,
    Ids,
    /// There are none, so the member may not exist.
    Existence,
    Over,
}

impl Reciprocal {
    pub(super) fn new(
        id: u64,
        edge: EdgeSelector,
        is_directed: bool,
        limit: u64,
    ) -> Result<Self, OperationError> {
        within("limit", limit, 1, LIMIT_MAX, "1 to 100000")?;
        let directions: &[Direction] =
            if is_directed { &[Direction::Out, Direction::In] } else { &[Direction::Both] };
        Ok(Self { id, edge, directions, limit, state: State::Start })
    }

    fn along(&self, direction: Direction) -> EdgeSelector {
        EdgeSelector { direction, ..self.edge.clone() }
    }

    fn plan(&self) -> Operator {
        let lists = self.directions.iter().map(|&direction| union(&self.along(direction)));
        let common = Operator::Intersect(lists.collect());
        Operator::Limit { input: Box::new(common), count: self.limit + 1 }
    }

    fn ask(&self, purpose: &'static str, plan: Operator) -> OperationStep {
        ask(purpose, FanOutKind::SingleKey, vec![self.id], plan)
    }

    fn done(&self, mut ids: Vec<u64>) -> OperationStep {
        let truncated = self.limit < ids.len() as u64;
        ids.truncate(self.limit as usize);
        OperationStep::Done(GraphAnswer::Reciprocal(ReciprocalAnswer { ids, truncated }))
    }
}

impl HasMachine for ReciprocalQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        let edge = names.edge()?;
        names.two_sided(&edge, "`reciprocal`")?;
        let is_directed = names.kind(&edge)?.role == KindRole::Directed;
        Ok(Box::new(Reciprocal::new(self.id, edge, is_directed, self.limit.unwrap_or(LIMIT))?))
    }
}

impl Machine for Reciprocal {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start => {
                self.state = State::Ids;
                Ok(self.ask(BOTH_WAYS, self.plan()))
            }
            State::Ids => {
                let ids = set_of(input)?;
                if !ids.is_empty() {
                    return Ok(self.done(ids));
                }
                self.state = State::Existence;
                Ok(self.ask(EXISTENCE, expand(&self.along(self.directions[0]), 0)))
            }
            State::Existence => {
                lists_of(&[self.id], input)?;
                Ok(self.done(Vec::new()))
            }
            State::Over => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let step =
            |purpose, when| Outline { purpose, kind: Some(FanOutKind::SingleKey), reach: "the member", when };
        vec![step(BOTH_WAYS, ""), step(EXISTENCE, "there are none")]
    }
}
