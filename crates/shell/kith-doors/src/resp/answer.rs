//! The values that a read found, and errors as replies.

use kith_operators::{Record, RecordError, Records};
use kith_query::QueryError;
use kith_schema::{RecordView, Schema};
use kith_wire::resp::error_prefix;
use std::{borrow::Cow, ops::Range, sync::Arc};

/// The answer to one read. Reads that went together share the values.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    values: Arc<Values>,
    /// The range of this read's values.
    keys: Range<usize>,
}

/// The values of keys of one store, all of one version.
#[derive(Debug)]
pub(super) struct Values {
    pub store: String,
    /// The outcome of each key.
    pub records: Records,
    /// The schema of the values, if they are records.
    pub schema: Option<Schema>,
    /// The error reply for keys that no replica answered for.
    pub unanswered: String,
}

impl Answer {
    /// The answer for `keys`, a range of the values' keys.
    pub fn new(values: Arc<Values>, keys: Range<usize>) -> Self {
        Self { values, keys }
    }

    /// The total length of this read's values in bytes. `O(keys)`.
    pub fn bytes(&self) -> usize {
        let records = &self.values.records;
        let length = |key| match records.get(key) {
            Some(Record::Found(bytes)) => bytes.len(),
            _ => 0,
        };
        self.keys.clone().map(length).sum()
    }

    /// The value of a key; `None` if the key does not exist.
    ///
    /// # Errors
    /// The error reply, if the value cannot be read.
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
    /// A record as JSON; any other value as it is.
    fn text<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        let Some(schema) = &self.schema else { return Ok(Cow::Borrowed(bytes)) };
        let json = RecordView::new(schema, bytes).and_then(|record| record.to_json());
        // The checksum holds, so the version was built with this record: other replicas have the same bytes.
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

/// An error as a reply: its code, its message, and what to do.
pub(super) fn refusal(error: &QueryError) -> String {
    format!("{} {}: {error} ({})", error_prefix(error.code()), error.code(), error.help())
}
