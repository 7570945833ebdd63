//! The common connections or entities of two members, by both plans of Moolle §II-C: fetch the lists and intersect them at
//! the caller, or evaluate the intersection in the inverted index of every partition (Algorithm 3, early-terminable).
//!
//! `Auto` fetches both lists up to [`COMMON_FETCH_MAX`] ids, so that short lists need one round trip. If one list is
//! longer, the short list is sent to the node of the long one. If both are longer, every partition is asked. `m` is common
//! to `a` and `b` under direction `d` exactly if both are in `m`'s list under `reverse(d)`, so those postings are read.

mod every_kind;

use super::{CommonAnswer, CommonPlan, CommonQuery, Want};
use crate::{
    FanOut, GraphAnswer, Input, OperationError, OperationStep, Outline, Scope,
    operations::{
        limits::COMMON_FETCH_MAX,
        machine::{
            HasMachine, Machine,
            ask::{List, ask, expand, lists_of, union},
            resolve::{Resolver, VertexKind},
        },
    },
};
use every_kind::AnyCommon;
use kith_operators::sets::{difference, intersect};
use kith_operators::{Operator, Value};
use kith_schema::EdgeSelector;
use kith_types::FanOutKind;

const LISTS: &str = "both lists";
const AT_LONGER: &str = "intersection at the longer list";
const PUSH: &str = "intersection in every partition";
const EXISTENCE: &str = "existence of the members";

/// A query for common connections or entities under way.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    /// The two members, or one if they are equal.
    members: Vec<u64>,
    /// The ids that do not count: sorted, distinct.
    drop: Vec<u64>,
    edge: EdgeSelector,
    want: Want,
    plan: CommonPlan,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Start,
    Lists,
    /// Waits for the common ids. The members are known to exist.
    Pushed,
    /// Waits for the common ids. If there are none, the members may not exist.
    PushedUnchecked,
    Existence,
    Over,
}

impl Common {
    pub(super) fn new(
        pair: [u64; 2],
        edge: EdgeSelector,
        shared: VertexKind,
        want: Want,
        plan: CommonPlan,
    ) -> Self {
        let mut members = pair.to_vec();
        members.dedup();
        let mut drop = if shared == VertexKind::Connections { members.clone() } else { Vec::new() };
        drop.sort_unstable();
        Self { members, drop, edge, want, plan, state: State::Start }
    }

    pub(super) fn start(&mut self) -> OperationStep {
        let longest = match self.plan {
            CommonPlan::Push => {
                self.state = State::PushedUnchecked;
                return self.push();
            }
            CommonPlan::Auto if self.members.len() == 2 => COMMON_FETCH_MAX,
            CommonPlan::Auto | CommonPlan::Fetch => u64::MAX,
        };
        self.state = State::Lists;
        ask(LISTS, FanOutKind::NonUnion, self.members.clone(), expand(&self.edge, longest))
    }

    fn intersect(&mut self, mut lists: Vec<List>) -> OperationStep {
        match (lists.pop(), lists.pop()) {
            (Some(List::Ids(ids)), None) => self.done(ids),
            (Some(List::Ids(b)), Some(List::Ids(a))) => self.done(intersect(&a, &b)),
            (Some(List::Ids(short)), Some(List::Longer)) => self.at_longer(self.members[0], short),
            (Some(List::Longer), Some(List::Ids(short))) => self.at_longer(self.members[1], short),
            _ => {
                self.state = State::Pushed;
                self.push()
            }
        }
    }

    /// Sends the short list to the node of the long one.
    fn at_longer(&mut self, longer: u64, short: Vec<u64>) -> OperationStep {
        let short = difference(&short, &self.drop);
        if short.is_empty() {
            return self.done(short);
        }
        self.state = State::Pushed;
        let common = Operator::Intersect(vec![union(&self.edge), Operator::Ids(short)]);
        ask(AT_LONGER, FanOutKind::SingleKey, vec![longer], self.wanted(common))
    }

    fn push(&self) -> OperationStep {
        let edge = EdgeSelector { direction: self.edge.direction.reverse(), ..self.edge.clone() };
        let postings = |&id: &u64| Operator::Postings { id, edge: edge.clone() };
        let common = Operator::Intersect(self.members.iter().map(postings).collect());
        let common = Operator::Except { input: Box::new(common), drop: self.drop.clone() };
        let (kind, plan) = (self.push_kind(), self.wanted(common));
        OperationStep::FanOut(FanOut { purpose: PUSH, kind, scope: Scope::Partitions, plan })
    }

    fn push_kind(&self) -> FanOutKind {
        if self.want == Want::Exists { FanOutKind::EarlyTerminable } else { FanOutKind::Broadcast }
    }

    /// The plan for the requested form of the set.
    fn wanted(&self, common: Operator) -> Operator {
        match self.want {
            Want::Ids => common,
            Want::Size => Operator::Count(Box::new(common)),
            Want::Exists => Operator::Exists(Box::new(common)),
        }
    }

    fn answer(&self, input: Input) -> Result<GraphAnswer, OperationError> {
        let answer = match (self.want, input) {
            (Want::Ids, Input::Value(Value::Set(ids))) => CommonAnswer::Ids(ids),
            (Want::Size, Input::Value(Value::Count(count))) => CommonAnswer::Size(count),
            (Want::Exists, Input::Value(Value::Exists(exists))) => CommonAnswer::Exists(exists),
            _ => return Err(OperationError::WrongValue),
        };
        Ok(GraphAnswer::Common(answer))
    }

    fn ask_existence(&mut self) -> OperationStep {
        self.state = State::Existence;
        ask(EXISTENCE, FanOutKind::NonUnion, self.members.clone(), expand(&self.edge, 0))
    }

    fn done(&self, common: Vec<u64>) -> OperationStep {
        let common = difference(&common, &self.drop);
        OperationStep::Done(GraphAnswer::Common(match self.want {
            Want::Ids => CommonAnswer::Ids(common),
            Want::Size => CommonAnswer::Size(common.len() as u64),
            Want::Exists => CommonAnswer::Exists(!common.is_empty()),
        }))
    }
}

impl HasMachine for CommonQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        let pair = [self.id, self.to];
        if self.kind.is_none() && self.returns == Want::Exists && names.is_any_kind() {
            let queries = names.every_shared().into_iter().map(|(edge, shared)| {
                let plan = plan_for(self.plan, &edge, names).unwrap_or(CommonPlan::Fetch);
                Common::new(pair, edge, shared, Want::Exists, plan)
            });
            let machine = AnyCommon::new(queries.collect()).ok_or(OperationError::NoEdgeType)?;
            return Ok(Box::new(machine));
        }
        let (edge, shared) = names.shared(self.kind.as_deref())?;
        let plan = plan_for(self.plan, &edge, names)?;
        Ok(Box::new(Common::new(pair, edge, shared, self.returns, plan)))
    }
}

impl Machine for Common {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start => Ok(self.start()),
            State::Lists => {
                let lists = lists_of(&self.members, input)?;
                Ok(self.intersect(lists))
            }
            State::Pushed => Ok(OperationStep::Done(self.answer(input)?)),
            State::PushedUnchecked => {
                let answer = self.answer(input)?;
                Ok(if is_nothing(&answer) { self.ask_existence() } else { OperationStep::Done(answer) })
            }
            State::Existence => {
                lists_of(&self.members, input)?;
                Ok(self.done(Vec::new()))
            }
            State::Over => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let many = Some(FanOutKind::NonUnion);
        let lists = Outline { purpose: LISTS, kind: many, reach: "both members", when: "" };
        let push =
            Outline { purpose: PUSH, kind: Some(self.push_kind()), reach: "every partition", when: "" };
        match self.plan {
            CommonPlan::Fetch => vec![lists],
            CommonPlan::Push => {
                let when = "nothing is in common";
                vec![push, Outline { purpose: EXISTENCE, kind: many, reach: "both members", when }]
            }
            CommonPlan::Auto => {
                let (kind, reach) = (Some(FanOutKind::SingleKey), "the member of the longer list");
                let at_longer = Outline { purpose: AT_LONGER, kind, reach, when: "one list is long" };
                vec![lists, at_longer, Outline { when: "both lists are long", ..push }]
            }
        }
    }
}

fn is_nothing(answer: &GraphAnswer) -> bool {
    match answer {
        GraphAnswer::Common(CommonAnswer::Ids(ids)) => ids.is_empty(),
        GraphAnswer::Common(CommonAnswer::Size(size)) => *size == 0,
        GraphAnswer::Common(CommonAnswer::Exists(exists)) => !exists,
        _ => false,
    }
}

/// The plan to intersect lists. One-sided edge types always fetch the lists.
fn plan_for(
    plan: CommonPlan,
    edge: &EdgeSelector,
    names: &Resolver<'_>,
) -> Result<CommonPlan, OperationError> {
    match plan {
        CommonPlan::Fetch => Ok(plan),
        CommonPlan::Auto if names.kind(edge)?.one_sided => Ok(CommonPlan::Fetch),
        CommonPlan::Auto => Ok(plan),
        CommonPlan::Push => names.two_sided(edge, "the plan \"push\"").map(|()| plan),
    }
}
