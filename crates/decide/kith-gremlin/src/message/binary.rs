//! Requests and answers in GraphBinary.

use super::{Decoded, Parts, Response, Serializer};
use crate::{
    error::Result,
    graphbinary::{Reader, Writer},
    room::Room,
    value::Value,
};
use uuid::Uuid;

/// The first byte of a message: a version of the format, 1, with the highest bit set.
const VERSION: u8 = 0x81;

/// The request that begins at byte `start` of a frame.
pub(super) fn decode(frame: &[u8], start: usize, room: &mut Room) -> Decoded {
    let mut reader = Reader::starting_at(frame, start).within(room);
    match id(&mut reader) {
        Ok(id) => (Some(id), parts(&mut reader)),
        Err(error) => (None, Err(error)),
    }
}

fn id(reader: &mut Reader<'_>) -> Result<Uuid> {
    let start = reader.offset();
    match reader.byte()? {
        VERSION => reader.uuid(),
        version => Err(reader
            .error_at(start, format!("the version of the request is 0x{version:02x}, not 0x{VERSION:02x}"))),
    }
}

fn parts(reader: &mut Reader<'_>) -> Result<Parts> {
    let (operation, processor) = (reader.string()?, reader.string()?);
    let arguments = reader.map()?;
    reader.finish()?;
    Ok(Parts { operation, processor, arguments })
}

pub(super) fn encode(response: &Response, serializer: Serializer) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.byte(VERSION);
    writer.byte(u8::from(response.id.is_none()));
    if let Some(id) = response.id {
        writer.uuid(id);
    }
    writer.i32(i32::from(response.status.code()));
    writer.byte(0);
    writer.string(&response.message)?;
    writer.map(&response.attributes)?;
    writer.map(&response.meta)?;
    match &response.data {
        None => writer.null(),
        Some(values) if serializer == Serializer::GraphBinaryText => {
            let texts: Vec<Value> = values.iter().map(|value| Value::text(value.to_string())).collect();
            writer.list(texts.iter())?;
        }
        Some(values) => writer.list(values.iter())?,
    }
    Ok(writer.into_bytes())
}
