//! Reads lists with the values of their columns.

use super::{GraphReader, KEYS_AT_A_TIME, Selection, find_in};
use crate::adjacency;
use crate::errors::ReadError;
use kith_schema::{EdgeList, EdgeSelector, SourceError};
use kith_types::Direction;
use std::ops::ControlFlow;

/// The list of one key, and the columns that are read with it.
struct Scratch {
    ids: Vec<u64>,
    columns: Vec<Vec<u64>>,
}

impl GraphReader {
    /// Implements [`kith_schema::NeighbourSource::edges`].
    pub(super) fn read_edges(
        &self,
        edge: &EdgeSelector,
        columns: &[&str],
        keys: &[u64],
        mut each: impl FnMut(usize, Option<EdgeList<'_>>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let selection = self.select(edge)?;
        let wanted = columns.iter().map(|name| selection.column(name)).collect::<Result<Vec<_>, _>>()?;
        let list = match selection.lists {
            [] => None,
            [list] => Some(*list),
            _ => return Err(SourceError::TwoLists { kind: edge.kind.clone() }),
        };
        let mut scratch = Scratch { ids: Vec::new(), columns: vec![Vec::new(); columns.len()] };
        let reading = Reading { selection, list, wanted };
        for (start, some) in (0..).step_by(KEYS_AT_A_TIME).zip(keys.chunks(KEYS_AT_A_TIME)) {
            let flow =
                self.edges_of_some(&reading, some, &mut scratch, |index, list| each(start + index, list));
            if flow?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Reads edges like [`GraphReader::read_edges`], for a bounded number of keys.
    fn edges_of_some(
        &self,
        reading: &Reading<'_>,
        keys: &[u64],
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, Option<EdgeList<'_>>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SourceError> {
        let Reading { selection, list, wanted } = reading;
        let mut flow = ControlFlow::Continue(());
        let empty = vec![Vec::new(); wanted.len()];
        let no_edges = EdgeList { ids: &[], columns: &empty };
        let Some(list) = *list else {
            for (index, &key) in keys.iter().enumerate() {
                flow = each(index, self.without_list(selection, key)?.map(|_| no_edges));
                if flow.is_break() {
                    break;
                }
            }
            return Ok(flow);
        };
        let readers = self.readers_of(selection, list, keys)?;
        let column_count = selection.component.graph().columns.len();
        find_in(
            keys,
            |index| readers[index],
            |index, found| {
                let edges = match found {
                    Some(found) => {
                        let Scratch { ids, columns } = &mut *scratch;
                        let decoded = adjacency::decode_with_columns(
                            found.value(),
                            column_count,
                            selection.filter,
                            ids,
                            wanted,
                            columns,
                        );
                        found.prove().map_err(ReadError::from)?;
                        decoded.map_err(|_| ReadError::from(found.malformed("adjacency list")))?;
                        Some(EdgeList { ids, columns })
                    }
                    None => self.without_list(selection, keys[index])?.map(|_| no_edges),
                };
                flow = each(index, edges);
                Ok(flow)
            },
        )?;
        Ok(flow)
    }
}

/// The data that is read for each key.
struct Reading<'a> {
    selection: Selection<'a>,
    /// The list that holds the edges; `None` for a plain list of members.
    list: Option<Direction>,
    /// Indices of the columns.
    wanted: Vec<usize>,
}
