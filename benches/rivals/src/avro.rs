//! Pages as Avro writes them, and a decoder for them written by hand: the work of Avro's generated classes, at its
//! best.

use serde::{Deserialize, Serialize};

/// The schema of [`Page`] in Avro's language.
pub const SCHEMA: &str = r#"{"type":"record","name":"Page","fields":[
    {"name":"title","type":"string"},
    {"name":"score","type":["null","double"]},
    {"name":"tags","type":{"type":"array","items":"string"}},
    {"name":"embed","type":{"type":"array","items":"float"}},
    {"name":"visits","type":"long"}]}"#;
/// The schema of a reader that wants only the last field.
pub const VISITS_SCHEMA: &str =
    r#"{"type":"record","name":"Page","fields":[{"name":"visits","type":"long"}]}"#;

/// A record with everything decoded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    pub title: String,
    pub score: Option<f64>,
    pub tags: Vec<String>,
    pub embed: Vec<f32>,
    pub visits: i64,
}

/// Decodes a whole page.
pub fn decode(mut bytes: &[u8]) -> Option<Page> {
    let rest = &mut bytes;
    let title = text(rest)?.to_owned();
    let score = match long(rest)? {
        0 => None,
        1 => Some(f64::from_le_bytes(take(rest)?)),
        _ => return None,
    };
    let (mut tags, mut embed) = (Vec::new(), Vec::new());
    while let count @ 1.. = block(rest)? {
        tags.reserve(count);
        for _ in 0..count {
            tags.push(text(rest)?.to_owned());
        }
    }
    while let count @ 1.. = block(rest)? {
        let (floats, after) = rest.split_at_checked(4 * count)?;
        *rest = after;
        embed.extend(floats.as_chunks::<4>().0.iter().map(|float| f32::from_le_bytes(*float)));
    }
    Some(Page { title, score, tags, embed, visits: long(rest)? })
}

/// Finds the last field, past all the others.
pub fn visits(mut bytes: &[u8]) -> Option<i64> {
    let rest = &mut bytes;
    text_bytes(rest)?;
    if long(rest)? == 1 {
        take::<8>(rest)?;
    }
    while let count @ 1.. = block(rest)? {
        for _ in 0..count {
            text_bytes(rest)?;
        }
    }
    while let count @ 1.. = block(rest)? {
        *rest = rest.get(4 * count..)?;
    }
    long(rest)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*bytes)
}

/// A zigzag varint.
fn long(rest: &mut &[u8]) -> Option<i64> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
        shift += 7;
        if 63 < shift {
            return None;
        }
    }
}

/// The number of items in the next block of an array; a negative count is followed by the block's length in bytes.
fn block(rest: &mut &[u8]) -> Option<usize> {
    let count = long(rest)?;
    if count < 0 {
        long(rest)?;
    }
    usize::try_from(count.unsigned_abs()).ok()
}

fn text_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(long(rest)?).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    str::from_utf8(text_bytes(rest)?).ok()
}
