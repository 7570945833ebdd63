//! Computes how many bytes the messages of an Arrow file or stream need. Messages are read as a whole, and compressed ones
//! state their decompressed size.

use arrow_ipc::{Message, MessageHeader, RecordBatch};
use arrow_schema::ArrowError;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The size of the end of a file: the length of its footer, and its magic.
const TAIL_BYTES: u64 = 10;
/// The marker before a message's length, since release 0.15.
const CONTINUES: u32 = u32::MAX;

fn damaged(what: impl ToString) -> ArrowError {
    ArrowError::IpcError(what.to_string())
}

/// The bytes that are held at the same time: all dictionaries, and one batch.
#[derive(Default)]
struct Needed {
    dictionaries: u64,
    largest: u64,
}

impl Needed {
    fn bytes(&self) -> u64 {
        self.dictionaries.saturating_add(self.largest)
    }

    fn add(&mut self, file: &File, message: &Message<'_>, body: (u64, u64)) -> Result<(), ArrowError> {
        match message.header_type() {
            MessageHeader::DictionaryBatch => {
                let batch = message.header_as_dictionary_batch().and_then(|batch| batch.data());
                let batch = batch.ok_or_else(|| damaged("a dictionary without values"))?;
                self.dictionaries = self.dictionaries.saturating_add(unpacked(file, &batch, body)?);
            }
            MessageHeader::RecordBatch => {
                let batch =
                    message.header_as_record_batch().ok_or_else(|| damaged("a batch without rows"))?;
                self.largest = self.largest.max(unpacked(file, &batch, body)?);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The size of a batch in stored and decompressed form. Each compressed buffer begins with its length.
fn unpacked(file: &File, batch: &RecordBatch<'_>, (start, length): (u64, u64)) -> Result<u64, ArrowError> {
    let mut bytes = length;
    if batch.compression().is_none() {
        return Ok(bytes);
    }
    for buffer in batch.buffers().iter().flatten().filter(|buffer| 8 <= buffer.length()) {
        let offset = u64::try_from(buffer.offset()).ok().and_then(|offset| start.checked_add(offset));
        let mut claimed = [0; 8];
        file.read_exact_at(&mut claimed, offset.ok_or_else(|| damaged("a buffer is nowhere"))?)?;
        // A negative length means that the buffer is not compressed.
        bytes = bytes.saturating_add(u64::try_from(i64::from_le_bytes(claimed)).unwrap_or(0));
    }
    Ok(bytes)
}

/// The bytes that a file with a footer needs.
pub(super) fn of_file(file: &File) -> Result<u64, ArrowError> {
    let length = file.metadata()?.len();
    let end = length.checked_sub(TAIL_BYTES).ok_or_else(|| damaged("it is too short"))?;
    let mut tail = [0; 4];
    file.read_exact_at(&mut tail, end)?;
    let start =
        end.checked_sub(u32::from_le_bytes(tail).into()).ok_or_else(|| damaged("its footer is cut off"))?;
    let footer = read(file, start, end - start)?;
    let footer = arrow_ipc::root_as_footer(&footer).map_err(damaged)?;
    let mut needed = Needed::default();
    let blocks =
        footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    for block in blocks {
        let number = |number: i64| u64::try_from(number).map_err(|_| damaged("a block is nowhere"));
        let (at, head) = (number(block.offset())?, number(block.metaDataLength().into())?);
        let body = (at.saturating_add(head), number(block.bodyLength())?);
        if length < body.0.saturating_add(body.1) {
            return Err(damaged("a block is cut off"));
        }
        let head = read(file, at, head)?;
        // The length, which follows the marker in newer files.
        let skip = if head.starts_with(&CONTINUES.to_le_bytes()) { 8 } else { 4 };
        let message = head.get(skip..).ok_or_else(|| damaged("a block is too short"))?;
        needed.add(file, &arrow_ipc::root_as_message(message).map_err(damaged)?, body)?;
    }
    Ok(needed.bytes())
}

/// The bytes that a stream of messages needs.
pub(super) fn of_stream(file: &File) -> Result<u64, ArrowError> {
    let length = file.metadata()?.len();
    let (mut needed, mut at) = (Needed::default(), 0u64);
    while at.saturating_add(4) <= length {
        let mut word = [0; 4];
        file.read_exact_at(&mut word, at)?;
        at += 4;
        if u32::from_le_bytes(word) == CONTINUES {
            file.read_exact_at(&mut word, at)?;
            at += 4;
        }
        let head = u64::from(u32::from_le_bytes(word));
        if head == 0 {
            break;
        }
        if length < at.saturating_add(head) {
            return Err(damaged("a message is cut off"));
        }
        let bytes = read(file, at, head)?;
        let message = arrow_ipc::root_as_message(&bytes).map_err(damaged)?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| damaged("a message has no length"))?;
        at = at.saturating_add(head);
        if length < at.saturating_add(body) {
            return Err(damaged("a message is cut off"));
        }
        needed.add(file, &message, (at, body))?;
        at = at.saturating_add(body);
    }
    Ok(needed.bytes())
}

/// Reads bytes if the file has them.
fn read(file: &File, at: u64, length: u64) -> Result<Vec<u8>, ArrowError> {
    let end = at.checked_add(length).filter(|end| file.metadata().is_ok_and(|file| *end <= file.len()));
    end.ok_or_else(|| damaged("it is cut off"))?;
    let mut bytes = vec![0; usize::try_from(length).map_err(damaged)?];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}
