//! The versions that an answer was read from, and which queries it may serve.

use kith_types::StoreVersion;

/// The versions that a query has pinned: that of the component that it reads, and that of the graph.
///
/// A load replaces one component and keeps the others, so the version of the graph changes more often than that of a
/// component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The version of the edge type's component. Origins are ordered by it first.
    pub component: StoreVersion,
    /// The version of the graph.
    pub graph: StoreVersion,
}

/// The state that an answer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The component alone.
    Component,
    /// The whole graph. Whether a member without edges exists depends on the member tables of all components.
    Graph,
}

/// The versions that a value was read from, and what it depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) basis: Basis,
}

impl Source {
    /// Whether the value may answer a query that pinned `wanted`.
    pub(crate) fn serves(self, wanted: Origin) -> bool {
        match self.basis {
            Basis::Component => self.origin.component == wanted.component,
            Basis::Graph => self.origin == wanted,
        }
    }

    /// Whether the value cannot serve `wanted` and is of an older version.
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
