//! Reads all rows of a partition in pages, for exports, always from the database and never from memory.
//!
//! A page consists of the rows as they are in the database when it is read. Keys are visited in ascending order, so a row
//! that exists from the first page to the last is in exactly one page. A row that is added or removed in the meantime may be
//! in one or in none.

use super::{
    database::GraphDatabase,
    errors::LiveError,
    partitions::HeldPartitions,
    types::KnownTypes,
    wire::{point_from_wire, point_to_wire},
};
use kith_live::{AssociationKey, GraphTypes, Inverse, ListKey, TypeId};
use kith_types::{LogPoint, PartitionId};
use kith_wire::v1;
use std::sync::Arc;

/// The number of objects in one read. An object may have 1 MiB.
const OBJECTS_READ: u32 = 64;
/// The number of associations in one read. An association may have 64 KiB.
const ASSOCIATIONS_READ: u32 = 1_024;
/// A page ends once its rows have this many bytes, or once [`PAGE_ROWS`] rows have been read.
const PAGE_BYTES: usize = 1 << 20;
/// The maximum number of rows that are read for a page. Rows of other types count too, although the page does not contain
/// them.
const PAGE_ROWS: usize = 16 << 10;

/// The key of a row.
#[derive(Clone, Copy, Debug)]
enum Key {
    Object(u64),
    Association(AssociationKey),
}

/// The rows of one read.
struct Part {
    at: LogPoint,
    /// The key of each row, and the row if it belongs in the page.
    rows: Vec<(Key, Option<v1::ScanRow>)>,
    /// Whether these are the last rows.
    is_last: bool,
}

/// Reads all rows of partitions of one graph.
pub(super) struct Scanner {
    pub database: Arc<GraphDatabase>,
    pub partitions: Arc<HeldPartitions>,
    pub types: Arc<KnownTypes>,
}

impl Scanner {
    /// Returns a page of the rows of one type.
    ///
    /// # Errors
    /// If the database cannot be read, or this node does not hold the partition or does not know the type.
    pub async fn scan(&self, request: &v1::ScanRequest) -> Result<v1::ScanReply, LiveError> {
        let partition = PartitionId(request.partition);
        if !self.partitions.contains(partition) {
            return Err(LiveError::NotOwner(partition));
        }
        let types = self
            .types
            .containing(|types| match request.objects {
                true => types.object(&request.r#type).is_some(),
                false => types.association(&request.r#type).is_some(),
            })
            .await;
        let kind = match request.objects {
            true => types.object_named(&request.r#type)?.0,
            false => types.association_named(&request.r#type)?.0,
        };
        let mut reply = v1::ScanReply { next: request.after, ..Default::default() };
        let (mut bytes, mut seen) = (0, 0);
        loop {
            let part = match request.objects {
                true => self.objects_after(&types, (partition, kind), reply.next).await?,
                false => self.associations_after(&types, (partition, kind), reply.next).await?,
            };
            let before = reply.at.map(point_from_wire).unwrap_or_default();
            if part.at.term < before.term || part.at.position < before.position {
                return Err(LiveError::HistoryLost);
            }
            reply.at = Some(point_to_wire(part.at));
            for (key, row) in part.rows {
                seen += 1;
                reply.next = Some(key.to_wire());
                if let Some(row) = row {
                    bytes += size_of::<v1::ScanRow>() + row.data.len();
                    reply.rows.push(row);
                }
                // The remaining rows of this read are read again for the next page.
                if PAGE_BYTES <= bytes || PAGE_ROWS <= seen {
                    return Ok(reply);
                }
            }
            if part.is_last {
                reply.next = None;
                return Ok(reply);
            }
        }
    }

    async fn objects_after(
        &self,
        types: &GraphTypes,
        (partition, kind): (PartitionId, TypeId),
        after: Option<v1::ScanPlace>,
    ) -> Result<Part, LiveError> {
        let page = self.database.scan_objects(partition, after.map(|key| key.id), OBJECTS_READ).await?;
        let is_last = page.objects.len() < OBJECTS_READ as usize;
        let row = |object: kith_live::Object| {
            let data = (object.kind == kind).then(|| types.decode(kind, &object.data)).transpose()?;
            let row = data.map(|data| v1::ScanRow { id: object.id, data, ..Default::default() });
            Ok((Key::Object(object.id), row))
        };
        let rows = page.objects.into_iter().map(row).collect::<Result<_, LiveError>>()?;
        Ok(Part { at: page.at, rows, is_last })
    }

    async fn associations_after(
        &self,
        types: &GraphTypes,
        (partition, kind): (PartitionId, TypeId),
        after: Option<v1::ScanPlace>,
    ) -> Result<Part, LiveError> {
        let after = after.map(|key| {
            let kind = TypeId(u16::try_from(key.r#type).unwrap_or(u16::MAX));
            ListKey { id1: key.id, kind }.to(key.id2)
        });
        let page = self.database.scan_associations(partition, after, ASSOCIATIONS_READ).await?;
        let is_last = page.associations.len() < ASSOCIATIONS_READ as usize;
        let symmetric = types.associations.get(&kind).is_some_and(|it| it.inverse == Inverse::Symmetric);
        let row = |(list, it): (ListKey, kith_live::Association)| {
            let is_wanted = list.kind == kind && !(symmetric && it.id2 < list.id1);
            let data = is_wanted.then(|| types.decode(kind, &it.data)).transpose()?;
            let row = data.map(|data| v1::ScanRow { id: list.id1, id2: it.id2, time: it.time, data });
            Ok((Key::Association(list.to(it.id2)), row))
        };
        let rows = page.associations.into_iter().map(row).collect::<Result<_, LiveError>>()?;
        Ok(Part { at: page.at, rows, is_last })
    }
}

impl Key {
    fn to_wire(self) -> v1::ScanPlace {
        match self {
            Key::Object(id) => v1::ScanPlace { id, ..Default::default() },
            Key::Association(AssociationKey { list, id2 }) => {
                v1::ScanPlace { id: list.id1, r#type: list.kind.0.into(), id2 }
            }
        }
    }
}
