//! The operations, one file each, as state machines without side effects.
//!
//! To add an operation, write a file with its machine, a variant of `Machine`, and a twin in `naive`.

mod answer;
mod any_common;
mod ask;
mod common;
mod cursor;
mod degree;
mod distance;
mod edges;
mod error;
mod first_degree;
mod limits;
mod live;
mod network;
mod operation;
mod path;
mod query;
mod resolve;
mod search;
mod suggest;
mod trace;

pub use answer::{
    AssociationsAnswer, CommonAnswer, EdgeColumn, EdgesAnswer, GraphAnswer, NetworkAnswer, PathAnswer,
};
pub use cursor::{EdgeCursor, NotACursor};
pub use edges::EdgesQuery;
pub use error::OperationError;
pub use limits::{
    ASSOCIATION_IDS_MAX, COMMON_FETCH_MAX, DEGREE_IDS_MAX, DISTANCE_TARGETS_MAX, EDGES_MAX, FIND_IDS_MAX,
    FIND_VALUES_MAX, OBJECT_IDS_MAX, PATH_LENGTH_MAX, SUGGESTIONS_MAX,
};
pub use operation::{FanOut, Input, Operation, OperationStep, Outline, Scope};
pub use query::{ColumnFilter, CommonPlan, GraphQuery, NetworkPlan, Operand, Want};

use any_common::AnyCommon;
use common::Common;
use degree::Degree;
use distance::Distance;
use edges::Edges;
use first_degree::FirstDegree;
use kith_operators::NetworkKey;
use kith_schema::{EdgeSelector, GraphSchema};
use kith_types::{Direction, Workflow};
use live::{Associations, Find, Objects};
use network::{NetworkFetch, NetworkQuery};
use path::Path;
use resolve::Resolver;
use suggest::Suggest;

/// The state machine of an operation.
#[derive(Clone, Debug)]
pub(crate) enum Machine {
    FirstDegree(FirstDegree),
    Degree(Degree),
    Edges(Box<Edges>),
    Objects(Objects),
    Find(Find),
    Associations(Associations),
    NetworkQuery(NetworkQuery),
    NetworkFetch(NetworkFetch),
    Distance(Distance),
    Path(Box<Path>),
    Common(Common),
    AnyCommon(AnyCommon),
    Suggest(Suggest),
}

impl Machine {
    pub(crate) fn new(query: &GraphQuery, schema: &GraphSchema) -> Result<Self, OperationError> {
        let names = Resolver { query, schema };
        Ok(match &query.operand {
            Operand::Connections { id } => Self::FirstDegree(FirstDegree::connections(*id, names.edge()?)),
            Operand::Entities { id, kind } => {
                Self::FirstDegree(FirstDegree::entities(*id, names.entity(kind, Direction::Out)?))
            }
            Operand::Members { kind, entity } => {
                Self::FirstDegree(FirstDegree::members(*entity, names.entity(kind, Direction::In)?))
            }
            Operand::Degree { ids, filter } => {
                Self::Degree(Degree::new(ids, names.filtered(names.edge()?, filter.as_ref())?)?)
            }
            Operand::Edges(query) => Self::Edges(Box::new(Edges::new(query, &names)?)),
            Operand::Objects { ids, is_single } => Self::Objects(Objects::new(ids, *is_single)?),
            Operand::Find(find) => Self::Find(Find::new(find)?),
            Operand::Associations { id1, read } => Self::Associations(Associations::new(*id1, read)?),
            Operand::Network { id, want } => Self::NetworkQuery(NetworkQuery::new(names.key(*id)?, *want)),
            Operand::Distance { from, to } => {
                let edge = names.edge()?;
                names.two_sided(&edge, "a distance")?;
                Self::Distance(Distance::new(names.key(*from)?, edge, to)?)
            }
            Operand::Path { from, to, max } => {
                let edge = names.edge()?;
                names.two_sided(&edge, "a path")?;
                let path = Path::new(names.key(*from)?, edge, *to, *max, query.workflow)?;
                Self::Path(Box::new(path))
            }
            Operand::Common { id, to, kind: None, want: Want::Exists, plan } if names.is_any_kind() => {
                let queries = names.every_shared().into_iter().map(|(edge, shared)| {
                    let plan = common_plan(*plan, &edge, &names).unwrap_or(CommonPlan::Fetch);
                    Common::new([*id, *to], edge, shared, Want::Exists, plan)
                });
                Self::AnyCommon(AnyCommon::new(queries.collect()).ok_or(OperationError::NoEdgeType)?)
            }
            Operand::Common { id, to, kind, want, plan } => {
                let (edge, shared) = names.shared(kind.as_deref())?;
                let plan = common_plan(*plan, &edge, &names)?;
                Self::Common(Common::new([*id, *to], edge, shared, *want, plan))
            }
            Operand::Suggest { id, k } => {
                Self::Suggest(Suggest::new(*id, names.edge()?, *k, query.workflow)?)
            }
        })
    }

    pub(crate) fn network(key: NetworkKey, workflow: Workflow, plan: NetworkPlan) -> Self {
        Self::NetworkFetch(NetworkFetch::new(key, workflow, plan))
    }

    pub(crate) fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match self {
            Self::FirstDegree(machine) => machine.step(input),
            Self::Degree(machine) => machine.step(input),
            Self::Edges(machine) => machine.step(input),
            Self::Objects(machine) => machine.step(input),
            Self::Find(machine) => machine.step(input),
            Self::Associations(machine) => machine.step(input),
            Self::NetworkQuery(machine) => machine.step(input),
            Self::NetworkFetch(machine) => machine.step(input),
            Self::Distance(machine) => machine.step(input),
            Self::Path(machine) => machine.step(input),
            Self::Common(machine) => machine.step(input),
            Self::AnyCommon(machine) => machine.step(input),
            Self::Suggest(machine) => machine.step(input),
        }
    }

    pub(crate) fn outline(&self) -> Vec<Outline> {
        match self {
            Self::FirstDegree(machine) => machine.outline(),
            Self::Degree(_) => degree::outline(),
            Self::Edges(_) => edges::outline(),
            Self::Objects(machine) => machine.outline(),
            Self::Find(_) => Find::outline(),
            Self::Associations(machine) => machine.outline(),
            Self::NetworkQuery(_) => vec![ask::NETWORK],
            Self::NetworkFetch(machine) => machine.outline(),
            Self::Distance(_) => distance::outline(),
            Self::Path(machine) => machine.outline(),
            Self::Common(machine) => machine.outline(),
            Self::AnyCommon(machine) => machine.outline(),
            Self::Suggest(machine) => machine.outline(),
        }
    }
}

/// The plan to intersect lists. One-sided edge types always fetch the lists.
fn common_plan(
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
