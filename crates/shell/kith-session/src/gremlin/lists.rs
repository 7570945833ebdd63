//! The edges of vertices of a loaded graph: whole lists, or parts of them.

use super::{
    fan_outs::of_keys,
    ids::VertexKey,
    loaded::LoadedGraph,
    rows::{Row, column_range, edges_of, expand, row_of, selector, unexpected},
};
use kith_gremlin::GremlinError;
use kith_operators::{EdgePosition, EdgesEntry, EdgesPlan, ListEntry, Operator, Value as Evaluated};
use kith_query::FanOut;
use kith_schema::{EdgeSelector, KindSchema};
use kith_traversal::{
    evaluate::of_edges,
    graph::{EdgeList, EdgePlace, Expansion},
};
use kith_types::Direction as Side;
use std::collections::{BTreeMap, BTreeSet};

/// Up to this number of lists, each is read on from its place, with a fan-out of its own. More are read again from their
/// beginnings, in one fan-out.
const READ_ON_MAX: usize = 16;
/// From this limit on, lists are read as sets, which are smaller in messages, and which routers keep.
const SET_MIN: usize = 1024;

/// The lists of vertices that lie under one kind.
struct KindLists<'k> {
    kind: &'k KindSchema,
    side: Side,
    /// The number of the kind's list among those of a vertex.
    list: usize,
}

/// A list that is read: whose it is, and after which place.
#[derive(Clone, Copy, Debug)]
struct ListRead {
    id: u64,
    after: Option<EdgePlace>,
}

/// A part of a list, and the place where it ends if there is more.
type RowPart = (Row, Option<EdgePlace>);

impl LoadedGraph<'_> {
    /// The edges of vertices: a fan-out for each kind of edges, and more for long lists.
    pub(super) async fn expanded(&self, expansion: &Expansion) -> Result<Vec<EdgeList>, GremlinError> {
        let mut sorts: BTreeMap<Option<String>, Vec<(usize, u64)>> = BTreeMap::new();
        for (at, id) in expansion.vertices.iter().enumerate() {
            match VertexKey::parse(id, self.schema()) {
                Some(VertexKey::Member(id)) => sorts.entry(None).or_default().push((at, id)),
                Some(VertexKey::Entity { kind, id }) => sorts.entry(Some(kind)).or_default().push((at, id)),
                None => {}
            }
        }
        let mut found = vec![EdgeList::default(); expansion.vertices.len()];
        for (entity_kind, vertices) in sorts {
            let all = self.lists_of(entity_kind.as_deref(), expansion);
            let limit = expansion.part.limit;
            for (list, (kind, side, is_out)) in all.iter().copied().enumerate() {
                // A place in a later list says that this one has been read.
                let wanted: Vec<(usize, ListRead)> = vertices
                    .iter()
                    .filter(|(at, _)| found[*at].rest.is_none() && found[*at].edges.len() < limit)
                    .filter_map(|(at, id)| {
                        let after = expansion.part.after(*at).filter(|position| list <= position.list);
                        let is_read = after.is_some_and(|position| list < position.list);
                        (!is_read).then_some((*at, ListRead { id: *id, after }))
                    })
                    .collect();
                if wanted.is_empty() {
                    continue;
                }
                let lists = KindLists { kind, side, list };
                let reads: Vec<ListRead> = wanted.iter().map(|(_, read)| *read).collect();
                let rows = self.rows(&lists, &reads, expansion).await?;
                for ((at, ListRead { id, .. }), (row, rest)) in wanted.into_iter().zip(rows) {
                    let own = super::ids::vertex_key(entity_kind.as_deref(), id);
                    let known = &mut found[at];
                    known.edges.extend(edges_of(kind, &own, is_out, row));
                    known.rest = rest;
                    // Each list may return as many as are wanted in all.
                    if rest.is_none() && limit <= known.edges.len() && list + 1 < all.len() {
                        known.rest = Some(EdgePlace { list: list + 1, last: None, read: 0 });
                    }
                }
            }
        }
        Ok(found)
    }

    /// Parts of lists, each after its place: with columns if the expansion wants properties, and then without edges outside
    /// of a range of a column. The edges of all rows are charged.
    async fn rows(
        &self,
        lists: &KindLists<'_>,
        reads: &[ListRead],
        expansion: &Expansion,
    ) -> Result<Vec<RowPart>, GremlinError> {
        let limit = expansion.part.limit;
        let is_set = SET_MIN <= limit && reads.iter().all(|read| read.after.is_none_or(|it| it.read == 0));
        if !is_set || (expansion.with_properties && !lists.kind.columns.is_empty()) {
            return self.pages(lists, reads, expansion).await;
        }
        let ids: Vec<u64> = distinct(reads);
        let plan = expand(selector(&lists.kind.name, lists.side), limit as u64);
        let entries = super::rows::lists(self.fan_outs.ask_keys("neighbours", &ids, plan).await?, ids.len())?;
        let length = |entry: &ListEntry| if let ListEntry::Ids(ids) = entry { ids.len() } else { 0 };
        self.meter().lend(of_edges(entries.iter().map(length).sum(), 0))?;
        let mut short: BTreeMap<u64, Option<Row>> = BTreeMap::new();
        for (id, entry) in ids.into_iter().zip(entries) {
            let row = match entry {
                ListEntry::Ids(ids) => Some(ids.into_iter().map(|id| (id, Vec::new())).collect()),
                ListEntry::Longer(_) => None,
                ListEntry::NotInGraph | ListEntry::Unanswered => Some(Row::new()),
            };
            short.insert(id, row);
        }
        let long: Vec<ListRead> =
            reads.iter().copied().filter(|read| matches!(short.get(&read.id), Some(None))).collect();
        let mut long = match long.is_empty() {
            true => Vec::new(),
            false => self.pages(lists, &long, expansion).await?,
        }
        .into_iter();
        let row = |read: &ListRead| match short.get(&read.id) {
            Some(Some(row)) => (row.clone(), None),
            _ => long.next().unwrap_or_default(),
        };
        Ok(reads.iter().map(row).collect())
    }

    /// As [`LoadedGraph::rows`], edge by edge.
    async fn pages(
        &self,
        KindLists { kind, side, list }: &KindLists<'_>,
        reads: &[ListRead],
        expansion: &Expansion,
    ) -> Result<Vec<RowPart>, GremlinError> {
        let columns = if expansion.with_properties { &kind.columns[..] } else { &[] };
        let filter = if columns.is_empty() { None } else { column_range(kind, &expansion.tests) };
        let edge = EdgeSelector { filter, ..selector(&kind.name, *side) };
        let plan = |after: Option<EdgePlace>, limit: usize| {
            Operator::Edges(Box::new(EdgesPlan {
                edge: edge.clone(),
                columns: columns.iter().map(|column| column.name.clone()).collect(),
                order_by: None,
                descending: false,
                after: after.and_then(|position| position.last).map(|[value, id]| EdgePosition { value, id }),
                limit: limit as u64,
            }))
        };
        let limit = expansion.part.limit;
        let read_before =
            reads.iter().map(|read| read.after.map_or(0, |position| position.read)).max().unwrap_or(0);
        let entries: Vec<EdgesEntry> = if 0 < read_before && reads.len() <= READ_ON_MAX {
            let fan_out = |read: &ListRead| of_keys("more edges", &[read.id], plan(read.after, limit));
            let fan_outs: Vec<FanOut> = reads.iter().map(fan_out).collect();
            let answers = self.fan_outs.ask_together(&fan_outs).await?;
            let mut pages = Vec::with_capacity(reads.len());
            for answer in answers {
                pages.extend(entries(answer, 1)?);
            }
            pages
        } else {
            let ids = distinct(reads);
            let answer =
                self.fan_outs.ask_keys("edges", &ids, plan(None, limit.saturating_add(read_before))).await?;
            let entries = entries(answer, ids.len())?;
            let by_id: BTreeMap<u64, EdgesEntry> = ids.into_iter().zip(entries).collect();
            reads.iter().map(|read| by_id.get(&read.id).cloned().unwrap_or(EdgesEntry::NotInGraph)).collect()
        };
        let length = |entry: &EdgesEntry| if let EdgesEntry::Page(page) = entry { page.ids.len() } else { 0 };
        self.meter().lend(of_edges(entries.iter().map(length).sum(), columns.len()))?;
        let part = |(entry, read): (EdgesEntry, &ListRead)| {
            let has_more = matches!(&entry, EdgesEntry::Page(page) if page.next.is_some());
            let row = row_of(columns, entry);
            let before = read.after.and_then(|position| position.last).map(|[_, id]| id);
            let first = before.map_or(0, |last| row.partition_point(|(id, _)| *id <= last));
            let end = row.len().min(first.saturating_add(limit));
            let has_more = has_more || end < row.len();
            let mut row: Row = row;
            row.truncate(end);
            row.drain(..first);
            let position = |(id, _): &(u64, _)| EdgePlace {
                list: *list,
                last: Some([0, *id]),
                read: read.after.map_or(0, |position| position.read) + row.len(),
            };
            let rest = row.last().map(position).filter(|_| has_more);
            (row, rest)
        };
        Ok(entries.into_iter().zip(reads).map(part).collect())
    }
}

/// The ids of lists, ascending and each once.
fn distinct(reads: &[ListRead]) -> Vec<u64> {
    reads.iter().map(|read| read.id).collect::<BTreeSet<u64>>().into_iter().collect()
}

fn entries(evaluated: Evaluated, expected: usize) -> Result<Vec<EdgesEntry>, GremlinError> {
    match evaluated {
        Evaluated::Edges(entries) if entries.len() == expected => Ok(entries),
        other => Err(unexpected(&other)),
    }
}
