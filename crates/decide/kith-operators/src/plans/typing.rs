//! Checks plans before anything is read: whether they are well-typed, the type of value that they yield, and whether two
//! nodes can return the same id.

use crate::{
    ASSOCIATION_IDS_MAX, EvaluateError, FIND_VALUES_MAX, Operator, PLAN_COLUMNS_MAX, TESTS_MAX, ValueKind,
};
use kith_schema::live::{AssociationRead, CountedElements, ElementTest, ObjectFields, Select};

impl Operator {
    /// The greatest depth of a plan. Operations of graphs need 4; the rest is room for a query language. It bounds the
    /// stack of code that walks a plan.
    pub const DEPTH_MAX: usize = 16;

    /// The most operators of a plan. Operations of graphs need 5.
    pub const COUNT_MAX: usize = 64;

    /// The most fixed ids of all operators of a plan together. Operations of graphs send 4,096.
    pub const IDS_MAX: usize = 1 << 16;

    /// The most association lists that a plan reads of each key.
    pub const LISTS_MAX: usize = 4_096;

    /// The operator's name in messages and printed plans.
    pub fn name(&self) -> &'static str {
        match self {
            Operator::Keys => "keys",
            Operator::Ids(_) => "ids",
            Operator::Expand { .. } => "expand",
            Operator::Postings { .. } => "postings",
            Operator::Members { .. } => "members",
            Operator::Union(_) => "union",
            Operator::Reach(_) => "reach",
            Operator::Neighbourhood { .. } => "neighbourhood",
            Operator::Tally(_) => "tally",
            Operator::Intersect(_) => "intersect",
            Operator::Except { .. } => "except",
            Operator::Limit { .. } => "limit",
            Operator::Count(_) => "count",
            Operator::Exists(_) => "exists",
            Operator::Edges(_) => "edges",
            Operator::Objects(_) => "objects",
            Operator::Passing(_) => "passing",
            Operator::Find(_) => "find",
            Operator::CountElements(_) => "count_elements",
            Operator::Total(_) => "total",
            Operator::Associations(_) => "associations",
            Operator::Lookup => "lookup",
            Operator::Compute(_) => "compute",
            Operator::Aggregate(_) => "aggregate",
        }
    }

    /// Checks the plan, and returns the type of value that it yields.
    ///
    /// # Errors
    /// [`EvaluateError::TooDeep`], [`EvaluateError::TooManyOperators`], [`EvaluateError::TooManyIds`],
    /// [`EvaluateError::Mistyped`], [`EvaluateError::NotAscending`].
    pub fn check(&self) -> Result<ValueKind, EvaluateError> {
        self.check_within(Self::DEPTH_MAX, &mut PlanSize::default())
    }

    fn check_within(&self, depth: usize, size: &mut PlanSize) -> Result<ValueKind, EvaluateError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(EvaluateError::TooDeep { max: Self::DEPTH_MAX });
        };
        size.add_operator()?;
        match self {
            Operator::Keys | Operator::Postings { .. } | Operator::Members { .. } => Ok(ValueKind::Set),
            Operator::Lookup | Operator::Compute(_) => Ok(ValueKind::Records),
            Operator::Aggregate(_) => Ok(ValueKind::Groups),
            Operator::Edges(plan) if PLAN_COLUMNS_MAX < plan.columns.len() => {
                let (what, got, max) = ("columns", plan.columns.len(), PLAN_COLUMNS_MAX);
                Err(EvaluateError::TooMany { what, got, max })
            }
            Operator::Edges(_) => Ok(ValueKind::Edges),
            Operator::Objects(ObjectFields::Named(names)) if Self::LISTS_MAX < names.len() => {
                let (what, got, max) = ("fields", names.len(), Self::LISTS_MAX);
                Err(EvaluateError::TooMany { what, got, max })
            }
            Operator::Objects(_) => Ok(ValueKind::Objects),
            Operator::Passing(tests) => check_tests(tests).map(|()| ValueKind::Set),
            Operator::Find(find) if FIND_VALUES_MAX < find.values.len() => {
                let (what, got, max) = ("values", find.values.len(), FIND_VALUES_MAX);
                Err(EvaluateError::TooMany { what, got, max })
            }
            Operator::Find(_) => Ok(ValueKind::Set),
            Operator::Associations(plan) => {
                check_tests(&plan.tests)?;
                check_reads(&plan.reads).map(|()| ValueKind::Associations)
            }
            Operator::CountElements(
                CountedElements::Objects(kinds) | CountedElements::Associations(kinds),
            ) if Self::LISTS_MAX < kinds.len() => {
                let (what, got, max) = ("types", kinds.len(), Self::LISTS_MAX);
                Err(EvaluateError::TooMany { what, got, max })
            }
            Operator::Reach(edges) | Operator::Total(edges) if Self::LISTS_MAX < edges.len() => {
                let (what, got, max) = ("lists", edges.len(), Self::LISTS_MAX);
                Err(EvaluateError::TooMany { what, got, max })
            }
            Operator::Reach(_) => Ok(ValueKind::Set),
            Operator::CountElements(_) | Operator::Total(_) => Ok(ValueKind::Count),
            Operator::Ids(ids) => self.check_ids(ids, size).map(|()| ValueKind::Set),
            Operator::Intersect(inputs) if inputs.is_empty() => {
                Err(EvaluateError::Mistyped { operator: self.name(), got: "nothing" })
            }
            Operator::Intersect(inputs) => {
                inputs.iter().try_for_each(|input| self.check_input(input, depth, size).map(drop))?;
                Ok(ValueKind::Set)
            }
            Operator::Except { input, drop } => {
                self.check_ids(drop, size)?;
                self.check_input(input, depth, size)
            }
            Operator::Expand { input, .. }
            | Operator::Neighbourhood { input, .. }
            | Operator::Limit { input, .. }
            | Operator::Union(input)
            | Operator::Tally(input)
            | Operator::Count(input)
            | Operator::Exists(input) => self.check_input(input, depth, size),
        }
    }

    fn check_input(
        &self,
        input: &Operator,
        depth: usize,
        size: &mut PlanSize,
    ) -> Result<ValueKind, EvaluateError> {
        let got = input.check_within(depth, size)?;
        // These are whole plans: no operator takes their ids as input.
        if matches!(input, Operator::Find(_) | Operator::Passing(_) | Operator::Reach(_)) {
            return Err(EvaluateError::Mistyped { operator: self.name(), got: got.name() });
        }
        self.given(got).ok_or_else(|| EvaluateError::Mistyped { operator: self.name(), got: got.name() })
    }

    /// The type of value that the operator yields for an input of this type; `None` if it does not accept such an input.
    fn given(&self, input: ValueKind) -> Option<ValueKind> {
        use ValueKind::{Count, Exists, Lists, Neighbourhood, Set, Tallies};
        match (self, input) {
            (Operator::Expand { .. }, Set) => Some(Lists),
            (Operator::Union(_), Lists) => Some(Set),
            (Operator::Neighbourhood { .. }, Set) => Some(Neighbourhood),
            (Operator::Tally(_), Lists) => Some(Tallies),
            (Operator::Intersect(_) | Operator::Limit { .. }, Set) => Some(Set),
            (Operator::Except { .. }, Set | Tallies) => Some(input),
            (Operator::Count(_), Set) => Some(Count),
            (Operator::Count(_), Lists) => Some(Lists),
            (Operator::Exists(_), Set) => Some(Exists),
            _ => None,
        }
    }

    fn check_ids(&self, ids: &[u64], size: &mut PlanSize) -> Result<(), EvaluateError> {
        size.add_ids(ids.len())?;
        let ascending = ids.windows(2).all(|pair| pair[0] < pair[1]);
        ascending.then_some(()).ok_or(EvaluateError::NotAscending { operator: self.name() })
    }

    /// Whether two nodes with different keys and partitions never return the same id, so that their counts can be added. A
    /// key, or a member of a partition, belongs to one node; neighbours do not.
    pub(crate) fn is_disjoint(&self) -> bool {
        match self {
            Operator::Keys
            | Operator::Postings { .. }
            | Operator::Members { .. }
            | Operator::Find(_)
            | Operator::Passing(_) => true,
            Operator::Intersect(inputs) => inputs.iter().any(Operator::is_disjoint),
            Operator::Except { input, .. } => input.is_disjoint(),
            _ => false,
        }
    }
}

/// Checks the number of lists and the number of ids of reads. They have limits of their own: such reads are a whole plan, so
/// their ids are not added to those of other operators.
fn check_reads(reads: &[AssociationRead]) -> Result<(), EvaluateError> {
    let ids = |read: &AssociationRead| match &read.select {
        Select::Ids { ids, .. } => ids.len(),
        _ => 0,
    };
    let ids = reads.iter().map(ids).sum();
    let counts = [("lists", reads.len(), Operator::LISTS_MAX), ("ids", ids, ASSOCIATION_IDS_MAX)];
    match counts.into_iter().find(|(_, got, max)| max < got) {
        Some((what, got, max)) => Err(EvaluateError::TooMany { what, got, max }),
        None => Ok(()),
    }
}

/// Checks the number of tests.
fn check_tests(tests: &[ElementTest]) -> Result<(), EvaluateError> {
    let (what, got, max) = ("tests", tests.len(), TESTS_MAX);
    if max < got { Err(EvaluateError::TooMany { what, got, max }) } else { Ok(()) }
}

/// The size of a plan as far as it was decoded or checked, so that a plan is refused as soon as it is too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanSize {
    operators: usize,
    ids: usize,
}

impl PlanSize {
    /// Counts an operator.
    ///
    /// # Errors
    /// [`EvaluateError::TooManyOperators`].
    pub fn add_operator(&mut self) -> Result<(), EvaluateError> {
        self.operators += 1;
        let max = Operator::COUNT_MAX;
        if self.operators <= max { Ok(()) } else { Err(EvaluateError::TooManyOperators { max }) }
    }

    /// Counts fixed ids.
    ///
    /// # Errors
    /// [`EvaluateError::TooManyIds`].
    pub fn add_ids(&mut self, count: usize) -> Result<(), EvaluateError> {
        self.ids = self.ids.saturating_add(count);
        let max = Operator::IDS_MAX;
        if self.ids <= max { Ok(()) } else { Err(EvaluateError::TooManyIds { max }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_schema::EdgeSelector;
    use kith_types::Direction;

    fn expand() -> Box<Operator> {
        let edge = EdgeSelector { kind: "connection".into(), direction: Direction::Both, filter: None };
        Box::new(Operator::Expand { input: Box::new(Operator::Keys), edge, longest: u64::MAX })
    }

    #[test]
    fn plans_say_what_they_give() {
        assert_eq!(expand().check(), Ok(ValueKind::Lists));
        assert_eq!(Operator::Union(expand()).check(), Ok(ValueKind::Set));
        assert_eq!(Operator::Tally(expand()).check(), Ok(ValueKind::Tallies));
        let edge = EdgeSelector { kind: "connection".into(), direction: Direction::Both, filter: None };
        let neighbourhood = Operator::Neighbourhood { input: Box::new(Operator::Keys), edge };
        assert_eq!(neighbourhood.check(), Ok(ValueKind::Neighbourhood));
        assert_eq!(Operator::Count(expand()).check(), Ok(ValueKind::Lists));
        assert_eq!(Operator::Count(Box::new(Operator::Keys)).check(), Ok(ValueKind::Count));
        assert_eq!(Operator::Exists(Box::new(Operator::Keys)).check(), Ok(ValueKind::Exists));
    }

    #[test]
    fn mistyped_plans_are_refused_by_the_operator_that_minds() {
        let union = Operator::Union(Box::new(Operator::Keys)).check();
        assert_eq!(union, Err(EvaluateError::Mistyped { operator: "union", got: "a set" }));
        let exists = Operator::Exists(expand()).check();
        assert_eq!(exists, Err(EvaluateError::Mistyped { operator: "exists", got: "lists" }));
        let none = Operator::Intersect(vec![]).check();
        assert_eq!(none, Err(EvaluateError::Mistyped { operator: "intersect", got: "nothing" }));
        assert_eq!(Operator::Ids(vec![2, 2]).check(), Err(EvaluateError::NotAscending { operator: "ids" }));
    }

    #[test]
    fn plans_that_are_too_wide_are_refused() {
        let wide = |count: usize| Operator::Intersect(vec![Operator::Keys; count]);
        assert_eq!(wide(Operator::COUNT_MAX - 1).check(), Ok(ValueKind::Set));
        let wider = Err(EvaluateError::TooManyOperators { max: Operator::COUNT_MAX });
        assert_eq!(wide(Operator::COUNT_MAX).check(), wider);
        // A plan that is not too deep, but has a thousand times too many operators.
        let bushy = (0..10).fold(Operator::Keys, |input, _| Operator::Intersect(vec![input.clone(), input]));
        assert_eq!(bushy.check(), wider);
        let ids = |count: u64| Operator::Ids((0..count).collect());
        let half = Operator::IDS_MAX as u64 / 2;
        assert_eq!(Operator::Intersect(vec![ids(half), ids(half)]).check(), Ok(ValueKind::Set));
        let more = Operator::Except { input: Box::new(ids(half)), drop: (0..=half).collect() };
        assert_eq!(more.check(), Err(EvaluateError::TooManyIds { max: Operator::IDS_MAX }));
    }

    #[test]
    fn plans_that_are_too_deep_are_refused() {
        let nest = |levels: usize| {
            (1..levels).fold(Operator::Keys, |input, _| Operator::Limit { input: Box::new(input), count: 1 })
        };
        assert_eq!(nest(Operator::DEPTH_MAX).check(), Ok(ValueKind::Set));
        let deeper = nest(Operator::DEPTH_MAX + 1).check();
        assert_eq!(deeper, Err(EvaluateError::TooDeep { max: Operator::DEPTH_MAX }));
    }
}
