//! Which plans are well-typed, what type of value they give, and which ids of
//! theirs two nodes can both hold. Checked before anything is read.

use crate::{EvaluateError, Operator, ValueKind};

impl Operator {
    /// The deepest plan that is evaluated. Operations of this crate need 4; the rest is room
    /// for a query language. It bounds the stack of whatever walks a plan.
    pub const DEPTH_MAX: usize = 16;

    /// The operator's name, as messages and plans print it.
    pub fn name(&self) -> &'static str {
        match self {
            Operator::Keys => "keys",
            Operator::Ids(_) => "ids",
            Operator::Expand { .. } => "expand",
            Operator::Postings { .. } => "postings",
            Operator::Members => "members",
            Operator::Union(_) => "union",
            Operator::Neighbourhood { .. } => "neighbourhood",
            Operator::Tally(_) => "tally",
            Operator::Intersect(_) => "intersect",
            Operator::Except { .. } => "except",
            Operator::Limit { .. } => "limit",
            Operator::Count(_) => "count",
            Operator::Exists(_) => "exists",
            Operator::Lookup => "lookup",
            Operator::Compute(_) => "compute",
            Operator::Aggregate(_) => "aggregate",
        }
    }

    /// The type of value this plan gives.
    ///
    /// # Errors
    /// [`EvaluateError::TooDeep`], [`EvaluateError::Mistyped`], [`EvaluateError::NotAscending`].
    pub fn check(&self) -> Result<ValueKind, EvaluateError> {
        self.check_within(Self::DEPTH_MAX)
    }

    fn check_within(&self, depth: usize) -> Result<ValueKind, EvaluateError> {
        use ValueKind::{Count, Exists, Lists, Records, Set, Tallies};
        let Some(depth) = depth.checked_sub(1) else {
            return Err(EvaluateError::TooDeep { max: Self::DEPTH_MAX });
        };
        let mistyped = |got: ValueKind| EvaluateError::Mistyped { operator: self.name(), got: got.name() };
        match self {
            Operator::Keys | Operator::Postings { .. } | Operator::Members => Ok(Set),
            Operator::Lookup | Operator::Compute(_) => Ok(Records),
            Operator::Aggregate(_) => Ok(ValueKind::Groups),
            Operator::Ids(ids) => self.ascending(ids).map(|()| Set),
            Operator::Expand { input, .. } => match input.check_within(depth)? {
                Set => Ok(Lists),
                other => Err(mistyped(other)),
            },
            Operator::Union(input) => match input.check_within(depth)? {
                Lists => Ok(Set),
                other => Err(mistyped(other)),
            },
            Operator::Neighbourhood { input, .. } => match input.check_within(depth)? {
                Set => Ok(ValueKind::Neighbourhood),
                other => Err(mistyped(other)),
            },
            Operator::Tally(input) => match input.check_within(depth)? {
                Lists => Ok(Tallies),
                other => Err(mistyped(other)),
            },
            Operator::Intersect(inputs) => {
                if inputs.is_empty() {
                    return Err(EvaluateError::Mistyped { operator: self.name(), got: "nothing" });
                }
                for input in inputs {
                    match input.check_within(depth)? {
                        Set => {}
                        other => return Err(mistyped(other)),
                    }
                }
                Ok(Set)
            }
            Operator::Except { input, drop } => {
                self.ascending(drop)?;
                match input.check_within(depth)? {
                    kind @ (Set | Tallies) => Ok(kind),
                    other => Err(mistyped(other)),
                }
            }
            Operator::Limit { input, .. } => match input.check_within(depth)? {
                Set => Ok(Set),
                other => Err(mistyped(other)),
            },
            Operator::Count(input) => match input.check_within(depth)? {
                Set => Ok(Count),
                Lists => Ok(Lists),
                other => Err(mistyped(other)),
            },
            Operator::Exists(input) => match input.check_within(depth)? {
                Set => Ok(Exists),
                other => Err(mistyped(other)),
            },
        }
    }

    fn ascending(&self, ids: &[u64]) -> Result<(), EvaluateError> {
        let ascending = ids.windows(2).all(|pair| pair[0] < pair[1]);
        ascending.then_some(()).ok_or(EvaluateError::NotAscending { operator: self.name() })
    }

    /// Whether two nodes with different keys and partitions never give the same id: their counts can be added up.
    /// A key and a member of a partition belong to one node each; neighbours do not.
    pub(crate) fn is_disjoint(&self) -> bool {
        match self {
            Operator::Keys | Operator::Postings { .. } | Operator::Members => true,
            Operator::Intersect(inputs) => inputs.iter().any(Operator::is_disjoint),
            Operator::Except { input, .. } => input.is_disjoint(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EdgeSelector;
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
    fn plans_that_are_too_deep_are_refused() {
        let nest = |levels: usize| {
            (1..levels).fold(Operator::Keys, |input, _| Operator::Limit { input: Box::new(input), count: 1 })
        };
        assert_eq!(nest(Operator::DEPTH_MAX).check(), Ok(ValueKind::Set));
        let deeper = nest(Operator::DEPTH_MAX + 1).check();
        assert_eq!(deeper, Err(EvaluateError::TooDeep { max: Operator::DEPTH_MAX }));
    }
}
