//! Which version an answer was read from, and which queries it may serve.

use kith_types::StoreVersion;

/// The versions that a query has pinned: of the one component that it reads, and of the graph around it.
///
/// A load replaces one component and takes the others over, so the version of the graph changes more often than that
/// of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The version of the edge type's component. Compared first.
    pub component: StoreVersion,
    /// The version of the graph.
    pub graph: StoreVersion,
}

/// What an answer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The component alone.
    Component,
    /// The whole graph: whether a member without edges exists is for the member tables of all components to say.
    Graph,
}

/// What a kept value was read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) basis: Basis,
}

impl Source {
    /// Whether a query that pinned `wanted` may be answered with it.
    pub(crate) fn serves(self, wanted: Origin) -> bool {
        match self.basis {
            Basis::Component => self.origin.component == wanted.component,
            Basis::Graph => self.origin == wanted,
        }
    }

    /// Whether it does not serve `wanted` and was read before it.
    pub(crate) fn is_older_than(self, wanted: Origin) -> bool {
        !self.serves(wanted) && self.origin < wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(component: u64, graph: u64) -> Origin {
        Origin { component: StoreVersion(component), graph: StoreVersion(graph) }
    }

    #[test]
    fn what_rests_on_the_component_outlives_loads_of_others() {
        let of = |basis| Source { origin: origin(1, 1), basis };
        assert!(of(Basis::Component).serves(origin(1, 2)));
        assert!(!of(Basis::Component).serves(origin(2, 2)));
        assert!(of(Basis::Graph).serves(origin(1, 1)) && !of(Basis::Graph).serves(origin(1, 2)));
    }

    #[test]
    fn what_serves_is_not_older() {
        let kept = Source { origin: origin(1, 1), basis: Basis::Component };
        assert!(!kept.is_older_than(origin(1, 2)) && kept.is_older_than(origin(2, 2)));
        let kept = Source { origin: origin(1, 3), basis: Basis::Graph };
        assert!(!kept.is_older_than(origin(1, 2)), "a rollback went back");
        assert!(kept.is_older_than(origin(1, 4)));
    }
}
