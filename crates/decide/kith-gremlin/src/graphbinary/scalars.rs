//! Reads times, characters and large numbers.

use super::{Reader, code::TypeCode};
use crate::{
    error::Result,
    value::{Value, numbers, time},
};
use num_bigint::BigInt;

/// Reads times, characters and large numbers from the bytes of a reader.
pub(super) struct ScalarReader<'r, 'a>(pub(super) &'r mut Reader<'a>);

impl ScalarReader<'_, '_> {
    pub(super) fn time(&mut self, code: TypeCode, start: usize) -> Result<Value> {
        let value = match code {
            TypeCode::OffsetDateTime | TypeCode::ZonedDateTime => {
                let date = (self.0.i32()?, self.0.byte()?, self.0.byte()?);
                let nanos = self.0.i64()?;
                time::date_time(date, nanos, self.0.i32()?)
            }
            TypeCode::Instant => {
                let seconds = self.0.i64()?;
                time::instant(seconds, u32::try_from(self.0.i32()?).unwrap_or(u32::MAX))
            }
            TypeCode::Duration => {
                let seconds = self.0.i64()?;
                let nanos = u32::try_from(self.0.i32()?).ok().filter(|nanos| *nanos < 1_000_000_000);
                let nanos = nanos.ok_or_else(|| {
                    self.0.error_at(start, "the nanoseconds of a duration are no fraction of a second")
                })?;
                Ok(Value::Duration { seconds, nanos })
            }
            _ => time::instant_of_millis(self.0.i64()?),
        };
        value.map_err(|error| self.0.located(start, error))
    }

    pub(super) fn char(&mut self) -> Result<char> {
        let start = self.0.offset();
        let length = match self.0.peek() {
            Some(0..=0x7f) | None => 1,
            Some(0x80..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(_) => 4,
        };
        let text = std::str::from_utf8(self.0.take(length)?).ok();
        text.and_then(|text| text.chars().next())
            .ok_or_else(|| self.0.error_at(start, "a character is not UTF-8"))
    }

    pub(super) fn big_integer(&mut self) -> Result<BigInt> {
        let start = self.0.offset();
        let bytes = self.0.sized()?;
        self.0.take_room(bytes.len())?;
        numbers::integer_of_bytes(bytes).map_err(|error| self.0.located(start, error))
    }
}
