//! What the keys of a store came to, and how errors are told.

use kith_api::QueryError;
use kith_ops::{Record, RecordError, Records};
use kith_schema::{RecordView, Schema};
use kith_wire::resp::error_prefix;
use std::{borrow::Cow, ops::Range, sync::Arc};

/// What one read came to; those that were read together share it.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    values: Arc<Values>,
    /// This read's keys.
    keys: Range<usize>,
}

/// The values of keys of one store, all of one version.
#[derive(Debug)]
pub(super) struct Values {
    /// The store.
    pub store: String,
    /// What came of each key.
    pub records: Records,
    /// What values are records of, where they are.
    pub schema: Option<Schema>,
    /// The error of keys that nobody answered for.
    pub unanswered: String,
}

impl Answer {
    /// To these of the keys.
    pub fn new(values: Arc<Values>, keys: Range<usize>) -> Self {
        Self { values, keys }
    }

    /// Bytes of this read's values. `O(keys)`.
    pub fn bytes(&self) -> usize {
        let records = &self.values.records;
        let length = |key| match records.get(key) {
            Some(Record::Found(bytes)) => bytes.len(),
            _ => 0,
        };
        self.keys.clone().map(length).sum()
    }

    /// The value of a key; `None` proves that there is none.
    ///
    /// # Errors
    /// The reply, if it cannot be had.
    pub fn value(&self, key: usize) -> Result<Option<Cow<'_, [u8]>>, String> {
        let values = &*self.values;
        match values.records.get(self.keys.start + key) {
            Some(Record::Found(bytes)) => values.text(bytes).map(Some),
            Some(Record::Absent) => Ok(None),
            Some(Record::Error(error)) => Err(values.failed(error)),
            Some(Record::Unanswered) => Err(values.unanswered.clone()),
            Some(Record::Unsent) | None => {
                let detail = format!("a key of store {:?} has no answer", values.store);
                Err(refusal(&QueryError::Internal { detail }))
            }
        }
    }
}

impl Values {
    /// A record as JSON, anything else as it is.
    fn text<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        let Some(schema) = &self.schema else { return Ok(Cow::Borrowed(bytes)) };
        let json = RecordView::new(schema, bytes).and_then(|record| record.to_json());
        // Its checksum holds, so that it was built so: no replica has it better.
        json.map(|json| Cow::Owned(json.into_bytes())).map_err(|fault| self.damaged(fault.to_string()))
    }

    fn failed(&self, error: RecordError) -> String {
        match error {
            RecordError::Disagreeing => {
                refusal(&QueryError::Disagreement { store: self.store.clone(), keys: 1 })
            }
            RecordError::Damaged => self.damaged("its checksum does not hold".to_owned()),
            RecordError::Unsuitable | RecordError::Dimensions(_) => {
                let detail = format!("a read was answered with {:?}", error.code());
                refusal(&QueryError::Internal { detail })
            }
        }
    }

    fn damaged(&self, detail: String) -> String {
        refusal(&QueryError::Damaged { store: self.store.clone(), detail })
    }
}

/// An error as a reply: code, message, what to do.
pub(super) fn refusal(error: &QueryError) -> String {
    format!("{} {}: {error} ({})", error_prefix(error.code()), error.code(), error.help())
}
