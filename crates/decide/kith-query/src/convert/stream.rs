//! Streams of records on the wire: both ends, and the checksum between them.

use super::{records_from_wire, records_to_wire};
use crate::{BatchKeys, BatchPiece, QueryError, StreamFailure, StreamFooter, StreamItem, StreamStatus};
use kith_operators::{Deliveries, RecordCounts, Records};
use kith_schema::{Schema, SchemaId, SchemaIdError};
use kith_types::ErrorCode;
use kith_wire::{
    body::{decode_set, encode_set},
    v1,
};
use std::{sync::Arc, time::Duration};

/// Encodes the items of a stream as messages.
#[derive(Debug)]
pub struct StreamWriter {
    store: String,
    /// Whether a message has already named the version.
    is_named: bool,
    crc32c: u32,
}

impl StreamWriter {
    /// Begins the stream of a read of this store.
    pub fn new(store: String) -> Self {
        Self { store, is_named: false, crc32c: 0 }
    }

    /// Encodes the next message; values are copied once.
    pub fn message(&mut self, item: StreamItem) -> v1::MultiGetPiece {
        match item {
            StreamItem::Piece(piece) => {
                let mut message = self.named(piece.version, piece.schema, piece.result.as_deref());
                let positions: Vec<u64> = piece.positions.iter().map(|position| (*position).into()).collect();
                message.positions = encode_set(&positions);
                message.records = records_to_wire(&piece.records);
                self.crc32c = extended(self.crc32c, &message);
                message
            }
            StreamItem::Footer(footer) => {
                let message = self.named(footer.version, footer.schema, None);
                v1::MultiGetPiece { footer: Some(footer_to_wire(*footer, self.crc32c)), ..message }
            }
        }
    }

    fn named(
        &mut self,
        version: u64,
        schema: Option<SchemaId>,
        result: Option<&Schema>,
    ) -> v1::MultiGetPiece {
        if std::mem::replace(&mut self.is_named, true) {
            return v1::MultiGetPiece::default();
        }
        v1::MultiGetPiece {
            served: Some(v1::Served::of_version(self.store.clone(), version)),
            schema: schema.map(|id| id.to_string()).unwrap_or_default(),
            result_schema: result.map(|schema| schema.canonical().to_owned()).unwrap_or_default(),
            ..Default::default()
        }
    }
}

/// The version and schemas that the first message of a stream names.
#[derive(Clone, Debug, Default)]
struct Named {
    version: u64,
    schema: Option<SchemaId>,
    result: Option<Arc<Schema>>,
}

impl Named {
    fn of(message: &v1::MultiGetPiece, version: u64) -> Result<Self, QueryError> {
        let text = &message.result_schema;
        let result = (!text.is_empty()).then(|| text.parse::<Schema>()).transpose();
        let result = result.map_err(malformed)?.map(Arc::new);
        let schema = (!message.schema.is_empty()).then(|| message.schema.parse()).transpose();
        let schema: Option<SchemaId> = schema.map_err(|error: SchemaIdError| malformed(error))?;
        if result.as_ref().is_some_and(|result| schema != Some(result.id())) {
            return Err(malformed("the schema of its results is another than it names"));
        }
        Ok(Self { version, schema, result })
    }
}

/// Decodes messages and keeps account of them: each key occurs once, the counts add up, and the checksum matches.
#[derive(Debug)]
pub struct StreamReader<'k> {
    /// The keys, if values come with proofs that are checked here.
    keys: Option<&'k BatchKeys>,
    books: Deliveries,
    /// The version and schemas, once a message has named them.
    named: Option<Named>,
    crc32c: u32,
    is_over: bool,
    mismatches: u64,
}

impl<'k> StreamReader<'k> {
    /// Reads a stream that answers this many keys.
    pub fn new(keys: usize) -> Self {
        Self {
            keys: None,
            books: Deliveries::new(keys),
            named: None,
            crc32c: 0,
            is_over: false,
            mismatches: 0,
        }
    }

    /// Reads a stream of the values of `keys`. Each value is checked against its proof before it is handed on.
    pub fn proving(keys: &'k BatchKeys) -> Self {
        Self { keys: Some(keys), ..Self::new(keys.len()) }
    }

    /// Decodes the items of a message, in order; values are not copied.
    ///
    /// # Errors
    /// [`QueryError::Internal`] if it is malformed, repeats a key, or has a footer that does not match the pieces.
    pub fn items(&mut self, message: v1::MultiGetPiece) -> Result<Vec<StreamItem>, QueryError> {
        if self.is_over {
            return Err(malformed("something follows its footer"));
        }
        if let Some(served) = &message.served {
            self.named = Some(Named::of(&message, served.version)?);
        }
        let Some(Named { version, schema, result }) = self.named.clone() else {
            return Err(malformed("no version is named"));
        };
        let mut items = Vec::new();
        if !message.positions.is_empty() {
            self.crc32c = extended(self.crc32c, &message);
            let positions = decode_set(&message.positions).map_err(malformed)?;
            let positions = positions.into_iter().map(u32::try_from).collect::<Result<Vec<_>, _>>();
            let positions = positions.map_err(malformed)?;
            let mut records = records_from_wire(&message.records, positions.len()).map_err(malformed)?;
            self.books.note(&positions, &records).map_err(malformed)?;
            if let Some(keys) = self.keys {
                let lookup = keys.lookup();
                let damaged = records.prove(|index| lookup.key(positions[index] as usize));
                if !damaged.is_empty() {
                    self.mismatches += damaged.len() as u64;
                    let why = format!("the checksums of {} values do not match", damaged.len());
                    return Err(malformed(why));
                }
            }
            items.push(StreamItem::Piece(BatchPiece { positions, records, version, schema, result }));
        }
        if let Some(footer) = message.footer {
            let footer = footer_from_wire(footer, version, schema)?;
            if footer.counts != self.books.counts() || !self.books.rest().is_empty() {
                return Err(malformed("its footer does not account for its keys"));
            }
            if footer.crc32c != Some(self.crc32c) {
                return Err(malformed("its checksum does not match"));
            }
            self.is_over = true;
            items.push(StreamItem::Footer(Box::new(footer)));
        }
        Ok(items)
    }

    /// The number of values that did not match their proof.
    pub fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// Whether the footer has arrived.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether no key has arrived yet.
    pub fn is_empty(&self) -> bool {
        self.books.is_empty()
    }

    /// The items that end a stream that was cut: the keys that did not arrive have no answer, for the reason `code`. Their
    /// partitions and the nodes that were asked are not known here.
    ///
    /// # Errors
    /// [`QueryError::Internal`] only after a bug.
    pub fn cut(mut self, code: ErrorCode, total: Duration) -> Result<Vec<StreamItem>, QueryError> {
        let Named { version, schema, result } = self.named.unwrap_or_default();
        let positions = self.books.rest();
        let keys = positions.len() as u64;
        let records = Records::unanswered(positions.len());
        self.books.note(&positions, &records).map_err(malformed)?;
        let counts = self.books.counts();
        let failure = StreamFailure { partitions: vec![], keys, code, nodes: vec![] };
        let footer = StreamFooter {
            status: StreamStatus::of(&counts),
            counts,
            // If all keys arrived, only the footer is missing.
            failures: if keys == 0 { vec![] } else { vec![failure] },
            version,
            schema,
            crc32c: None,
            total,
            service: Duration::ZERO,
            profile: None,
        };
        let piece = BatchPiece { positions, records, version, schema, result };
        let pieces = (0 < keys).then_some(StreamItem::Piece(piece));
        Ok(pieces.into_iter().chain([StreamItem::Footer(Box::new(footer))]).collect())
    }
}

fn extended(crc32c: u32, message: &v1::MultiGetPiece) -> u32 {
    kith_types::crc32c_append(kith_types::crc32c_append(crc32c, &message.positions), &message.records)
}

fn footer_to_wire(footer: StreamFooter, crc32c: u32) -> v1::StreamFooter {
    let RecordCounts { found, absent, error, unanswered } = footer.counts;
    let failures = footer.failures.into_iter().map(|failure| {
        let partitions: Vec<u64> = failure.partitions.iter().map(|partition| (*partition).into()).collect();
        v1::StreamFailure {
            partitions: encode_set(&partitions),
            code: failure.code.name().to_owned(),
            nodes: failure.nodes,
            keys: failure.keys,
        }
    });
    let status = match footer.status {
        StreamStatus::Ok => v1::StreamStatus::Ok,
        StreamStatus::Partial => v1::StreamStatus::Partial,
        StreamStatus::Failed => v1::StreamStatus::Failed,
    };
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    v1::StreamFooter {
        status: status.into(),
        found,
        absent,
        error,
        unanswered,
        failures: failures.collect(),
        crc32c,
        total_us: micros(footer.total),
        service_us: micros(footer.service),
        profile: footer.profile,
    }
}

fn footer_from_wire(
    wire: v1::StreamFooter,
    version: u64,
    schema: Option<SchemaId>,
) -> Result<StreamFooter, QueryError> {
    let status = match wire.status() {
        v1::StreamStatus::Ok => StreamStatus::Ok,
        v1::StreamStatus::Partial => StreamStatus::Partial,
        v1::StreamStatus::Failed => StreamStatus::Failed,
        v1::StreamStatus::None => return Err(malformed("its footer has no status")),
    };
    let failures = wire.failures.into_iter().map(|failure| {
        let partitions = decode_set(&failure.partitions).map_err(malformed)?;
        let partitions = partitions.into_iter().map(u32::try_from).collect::<Result<_, _>>();
        Ok(StreamFailure {
            partitions: partitions.map_err(malformed)?,
            keys: failure.keys,
            code: ErrorCode::of_name(&failure.code),
            nodes: failure.nodes,
        })
    });
    Ok(StreamFooter {
        status,
        counts: RecordCounts {
            found: wire.found,
            absent: wire.absent,
            error: wire.error,
            unanswered: wire.unanswered,
        },
        failures: failures.collect::<Result<_, QueryError>>()?,
        version,
        schema,
        crc32c: Some(wire.crc32c),
        total: Duration::from_micros(wire.total_us),
        service: Duration::from_micros(wire.service_us),
        profile: wire.profile,
    })
}

fn malformed(why: impl std::fmt::Display) -> QueryError {
    QueryError::Internal { detail: format!("a stream is invalid: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_operators::{RecordError, RecordsBuilder};
    use kith_types::ErrorCode;

    fn piece(positions: &[u32], damaged: bool) -> StreamItem {
        let mut records = RecordsBuilder::with_capacity(0);
        for position in positions {
            match position % 3 {
                0 => assert!(records.found(&[*position as u8; 9])),
                1 => records.absent(),
                _ if damaged => records.error(RecordError::Damaged),
                _ => records.unanswered(),
            }
        }
        StreamItem::Piece(BatchPiece {
            positions: positions.to_vec(),
            records: records.finish(),
            version: 7,
            schema: Some(SchemaId([3; 32])),
            result: None,
        })
    }

    /// A footer for five keys that matches their pieces.
    fn footer() -> StreamItem {
        StreamItem::Footer(Box::new(StreamFooter {
            status: StreamStatus::Partial,
            counts: RecordCounts { found: 2, absent: 2, error: 0, unanswered: 1 },
            failures: vec![StreamFailure {
                partitions: vec![2, 300],
                keys: 1,
                code: ErrorCode::DeadlineExceeded,
                nodes: vec![4, 1],
            }],
            version: 7,
            schema: Some(SchemaId([3; 32])),
            crc32c: None,
            total: Duration::from_micros(12),
            service: Duration::from_micros(3),
            profile: None,
        }))
    }

    fn written(items: &[StreamItem]) -> Vec<v1::MultiGetPiece> {
        let mut writer = StreamWriter::new("people".to_owned());
        items.iter().map(|item| writer.message(item.clone())).collect()
    }

    fn read(messages: Vec<v1::MultiGetPiece>) -> Result<Vec<StreamItem>, QueryError> {
        let mut reader = StreamReader::new(5);
        let items: Result<Vec<_>, _> = messages.into_iter().map(|message| reader.items(message)).collect();
        Ok(items?.concat())
    }

    #[test]
    fn streams_come_back_as_they_went() {
        let items = [piece(&[1, 3], false), piece(&[0, 2, 4], false), footer()];
        let messages = written(&items);
        assert_eq!(messages.iter().filter(|message| message.served.is_some()).count(), 1);
        let back = read(messages).unwrap();
        assert_eq!(back[..2], items[..2]);
        let (StreamItem::Footer(back), StreamItem::Footer(sent)) = (&back[2], &items[2]) else { panic!() };
        assert!(back.crc32c.is_some());
        assert_eq!(StreamFooter { crc32c: None, ..(**back).clone() }, **sent);
    }

    #[test]
    fn results_come_with_their_schema_and_with_no_other() {
        let schema: Schema = r#"{"fields":[{"name":"score","type":"f64"}]}"#.parse().unwrap();
        let StreamItem::Piece(piece) = piece(&[0, 1, 2, 3, 4], false) else { panic!() };
        let result = Some(Arc::new(schema.clone()));
        let sent = StreamItem::Piece(BatchPiece { schema: Some(schema.id()), result, ..piece });
        let sent = [sent];
        assert_eq!(read(written(&sent)).unwrap(), sent);
        let mut other = written(&sent);
        other[0].schema = SchemaId([3; 32]).to_string();
        assert_eq!(read(other.clone()).unwrap_err().code(), ErrorCode::Internal);
        other[0].result_schema = "{".to_owned();
        assert_eq!(read(other).unwrap_err().code(), ErrorCode::Internal);
    }

    #[test]
    fn what_does_not_add_up_is_an_error() {
        let whole = || written(&[piece(&[1, 3], false), piece(&[0, 2, 4], false), footer()]);
        let refused = |messages| assert_eq!(read(messages).unwrap_err().code(), ErrorCode::Internal);
        refused(written(&[piece(&[1, 3], false), piece(&[1], false)]));
        refused(written(&[piece(&[5], false)]));
        refused(written(&[piece(&[1, 3], false), footer()]));
        refused(written(&[piece(&[1, 3], false), piece(&[0, 2, 4], true), footer()]));
        let mut flipped = whole();
        flipped[1].records = [&flipped[1].records[..flipped[1].records.len() - 1], b"!"].concat().into();
        refused(flipped);
        let mut more = whole();
        more.push(more[0].clone());
        refused(more);
        let mut nameless = whole();
        nameless[0].served = None;
        refused(nameless);
        let mut torn = whole();
        torn[0].positions = vec![9].into();
        refused(torn);
    }

    #[test]
    fn of_a_stream_that_was_cut_the_rest_is_unanswered() {
        let mut reader = StreamReader::new(5);
        reader.items(written(&[piece(&[0, 4], false)]).remove(0)).unwrap();
        assert!(!reader.is_over() && !reader.is_empty());
        let items = reader.cut(ErrorCode::Unreachable, Duration::ZERO).unwrap();
        let [StreamItem::Piece(piece), StreamItem::Footer(footer)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((&piece.positions, piece.records.counts().unanswered), (&vec![1, 2, 3], 3));
        let expected = RecordCounts { found: 1, absent: 1, error: 0, unanswered: 3 };
        assert_eq!((footer.status, footer.counts, footer.version), (StreamStatus::Partial, expected, 7));
        assert_eq!((footer.failures[0].code, footer.failures[0].keys), (ErrorCode::Unreachable, 3));
    }

    #[test]
    fn a_stream_that_lacks_its_footer_alone_lacks_no_key() {
        let mut reader = StreamReader::new(3);
        reader.items(written(&[piece(&[0, 1, 3], false)]).remove(0)).unwrap_err();
        let mut reader = StreamReader::new(2);
        reader.items(written(&[piece(&[0, 1], false)]).remove(0)).unwrap();
        let items = reader.cut(ErrorCode::DeadlineExceeded, Duration::ZERO).unwrap();
        let [StreamItem::Footer(footer)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((footer.status, &footer.failures, footer.crc32c), (StreamStatus::Ok, &vec![], None));
    }
}
