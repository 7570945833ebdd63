//! Collects what one position of a log writes: rows, lengths of lists, and the effects that replicas apply.

use super::{NotLoaded, Rows};
use crate::{
    Association, AssociationKey, CHANGE_OBJECT_BYTES_MAX, EdgeContent, Effect, LoggedChange, Object,
    RecordedOutcome, RowWrite, WriteId,
};
use kith_types::LogPoint;

/// A change that is being built.
pub(super) struct Changes<'a> {
    rows: &'a Rows,
    change: LoggedChange,
}

impl<'a> Changes<'a> {
    pub(super) fn new(rows: &'a Rows) -> Self {
        Self { rows, change: LoggedChange::default() }
    }

    pub(super) fn finish(self) -> LoggedChange {
        self.change
    }

    pub(super) fn put_object(&mut self, object: Object) {
        let is_large = CHANGE_OBJECT_BYTES_MAX < object.data.bytes.len();
        self.change.change.effects.push(if is_large {
            Effect::LargeObject(object.id)
        } else {
            Effect::Object(object.clone())
        });
        self.change.rows.push(RowWrite::PutObject(object));
    }

    pub(super) fn delete_object(&mut self, id: u64) {
        self.change.change.effects.push(Effect::NoObject(id));
        self.change.rows.push(RowWrite::DeleteObject(id));
    }

    /// Gives an association its new state, and its list the new length. A change may call this only once for each list,
    /// because the new length is computed from the length that was read.
    pub(super) fn set_association(
        &mut self,
        key: AssociationKey,
        content: Option<&EdgeContent>,
        stamp: LogPoint,
    ) -> Result<(), NotLoaded> {
        let was = self.rows.association(key)?.map(|association| association.time);
        let count = self.rows.count(key.list)?;
        match (content, was) {
            (Some(content), was) => {
                let count = if was.is_some() { count } else { count + 1 };
                let EdgeContent { time, data } = content.clone();
                let now = Association { id2: key.id2, time, stamp, data };
                self.row(RowWrite::PutAssociation(key.list, now.clone()));
                if was.is_none() {
                    self.row(RowWrite::SetCount(key.list, count));
                }
                self.change.change.effects.push(Effect::Association { list: key.list, now, was, count });
            }
            (None, Some(was)) => {
                let count = count.saturating_sub(1);
                self.row(RowWrite::DeleteAssociation(key));
                self.row(RowWrite::SetCount(key.list, count));
                let effect = Effect::NoAssociation { list: key.list, id2: key.id2, was, count };
                self.change.change.effects.push(effect);
            }
            (None, None) => {}
        }
        Ok(())
    }

    pub(super) fn put_outcome(&mut self, id: WriteId, outcome: RecordedOutcome) {
        self.row(RowWrite::PutOutcome(id, outcome));
    }

    pub(super) fn row(&mut self, row: RowWrite) {
        self.change.rows.push(row);
    }
}
