//! Edges with the values of their columns: the plan for a node, and how a node cuts a page out of a list.

use crate::EdgePosition;
use kith_schema::{EdgeList, EdgeSelector};
use std::cmp::Ordering;

/// The most columns of one plan. An edge type or entity kind has at most eight.
pub const PLAN_COLUMNS_MAX: usize = 16;

/// The wanted edges of each key, with their columns and order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgesPlan {
    /// The edges to follow.
    pub edge: EdgeSelector,
    /// The names of the columns to return, in this order.
    pub columns: Vec<String>,
    /// The column to sort by, ties by ascending id; `None` sorts by id.
    pub order_by: Option<String>,
    /// Whether the greatest edge comes first.
    pub descending: bool,
    /// The edge after which the page begins, in the order of the plan.
    pub after: Option<EdgePosition>,
    /// The most edges per key.
    pub limit: u64,
}

/// The edges of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgesEntry {
    /// The key is not in the graph. This is different from having no edges.
    NotInGraph,
    /// The page that the plan asks for.
    Page(EdgePage),
    /// No replica answered for the key. Possible only if the caller accepts partial answers.
    Unanswered,
}

/// Some edges of one key, in the order of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgePage {
    /// The other end of each edge.
    pub ids: Vec<u64>,
    /// The stored values of each column of the plan: as many lists as the plan has columns, each as long as `ids`.
    pub columns: Vec<Vec<u64>>,
    /// The place of the last of these edges if others follow; `None` otherwise.
    pub next: Option<EdgePosition>,
}

impl EdgesPlan {
    /// The columns to read: those to return, followed by the one to sort by if it is not among them.
    pub(crate) fn read(&self) -> Vec<&str> {
        let by = self.order_by.iter().filter(|name| !self.columns.contains(name));
        self.columns.iter().chain(by).map(String::as_str).collect()
    }

    /// Compares two edges in the order of the plan.
    fn order(&self, a: EdgePosition, b: EdgePosition) -> Ordering {
        match (&self.order_by, self.descending) {
            (None, false) => a.id.cmp(&b.id),
            (None, true) => b.id.cmp(&a.id),
            (Some(_), false) => (a.value, a.id).cmp(&(b.value, b.id)),
            (Some(_), true) => b.value.cmp(&a.value).then(a.id.cmp(&b.id)),
        }
    }

    /// Cuts the page of the plan out of a list that was read with the columns of [`EdgesPlan::read`]. `O(n + k log k)` for
    /// `k` edges of `n`.
    pub(crate) fn page(&self, list: EdgeList<'_>) -> EdgePage {
        let by = self.order_by.as_ref().and_then(|name| {
            let index = self.columns.iter().position(|column| column == name);
            list.columns.get(index.unwrap_or(self.columns.len()))
        });
        let position = |index: usize| EdgePosition {
            value: by.and_then(|by| by.get(index)).copied().unwrap_or(0),
            id: list.ids[index],
        };
        let follows = |index: &usize| {
            self.after.is_none_or(|after| self.order(after, position(*index)) == Ordering::Less)
        };
        let mut indices: Vec<usize> = (0..list.ids.len()).filter(follows).collect();
        let order = |a: &usize, b: &usize| self.order(position(*a), position(*b));
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = limit < indices.len();
        if more {
            indices.select_nth_unstable_by(limit, order);
            indices.truncate(limit);
        }
        indices.sort_unstable_by(order);
        let pick = |values: &Vec<u64>| indices.iter().map(|&index| values[index]).collect();
        EdgePage {
            ids: indices.iter().map(|&index| list.ids[index]).collect(),
            columns: list.columns.iter().take(self.columns.len()).map(pick).collect(),
            next: if more { indices.last().map(|&index| position(index)) } else { None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::Direction;
    use proptest::prelude::*;

    fn plan(order_by: Option<&str>, descending: bool, limit: u64) -> EdgesPlan {
        EdgesPlan {
            edge: EdgeSelector { kind: "follows".to_owned(), direction: Direction::Out, filter: None },
            columns: vec!["since".to_owned()],
            order_by: order_by.map(str::to_owned),
            descending,
            after: None,
            limit,
        }
    }

    proptest! {
        /// All pages in sequence are the list, sorted in the plain way.
        #[test]
        fn pages_are_the_sorted_list_in_pieces(
            edges in prop::collection::btree_map(any::<u64>(), 0u64..6, 0..60),
            by_column: bool,
            returned: bool,
            descending: bool,
            limit in 1u64..9,
        ) {
            let ids: Vec<u64> = edges.keys().copied().collect();
            let since: Vec<u64> = edges.values().copied().collect();
            let mut plan = plan(by_column.then_some("since"), descending, limit);
            plan.columns.truncate(usize::from(returned));
            let columns = vec![since.clone(); plan.read().len()];
            let list = EdgeList { ids: &ids, columns: &columns };
            let mut got = Vec::new();
            loop {
                let page = plan.page(list);
                prop_assert!(page.ids.len() as u64 <= limit);
                prop_assert_eq!(page.columns.len(), usize::from(returned));
                prop_assert!(page.columns.iter().all(|column| *column == page.ids.iter().map(|id| edges[id]).collect::<Vec<_>>()));
                got.extend(page.ids.iter().map(|id| (*id, edges[id])));
                match page.next {
                    None => break,
                    next => plan.after = next,
                }
            }
            let mut expected: Vec<(u64, u64)> = edges.into_iter().collect();
            match (by_column, descending) {
                (false, false) => {}
                (false, true) => expected.reverse(),
                (true, false) => expected.sort_by_key(|&(id, since)| (since, id)),
                (true, true) => expected.sort_by_key(|&(id, since)| (std::cmp::Reverse(since), id)),
            }
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_position_need_not_be_an_edge_of_the_list() {
        let mut plan = plan(None, false, 10);
        plan.after = Some(EdgePosition { value: 0, id: 5 });
        let columns = [vec![1, 2, 3]];
        let page = plan.page(EdgeList { ids: &[4, 6, 7], columns: &columns });
        assert_eq!(page, EdgePage { ids: vec![6, 7], columns: vec![vec![2, 3]], next: None });
    }

    #[test]
    fn a_limit_of_nothing_is_an_empty_page() {
        let columns = [vec![1]];
        let page = plan(None, false, 0).page(EdgeList { ids: &[4], columns: &columns });
        assert!(page.ids.is_empty());
    }
}
