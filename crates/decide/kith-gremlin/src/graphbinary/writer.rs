//! Writes values as bytes.

use super::{DEPTH_MAX, code::TypeCode};
use crate::{
    assemble,
    error::{GremlinError, Result},
    room::Room,
    value::{Map, Symbol, Value, time},
};
use bigdecimal::BigDecimal;
use chrono::{DateTime, Datelike, FixedOffset};
use uuid::Uuid;

/// Writes one value after another.
///
/// A method that takes what can be long fails if it is too long for the format, which counts with 31 bits.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    depth: usize,
    room: Room,
}

/// No value of fixed length is longer, with its type.
const FIXED_BYTES_MAX: usize = 32;

impl Writer {
    /// A writer whose bytes take no more memory than there is room.
    pub fn within(room: Room) -> Self {
        Self { room, ..Self::default() }
    }

    /// The bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes written, and the room that they take.
    pub fn into_parts(self) -> (Vec<u8>, Room) {
        (self.bytes, self.room)
    }

    /// Makes sure that this number of bytes can be added, which takes room for them.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if more <= capacity - length || self.room.is_unbounded() {
            return Ok(());
        }
        let wanted = length.saturating_add(more).max(2 * capacity);
        self.room.take(wanted)?;
        self.bytes.reserve_exact(wanted - length);
        self.room.give_back(capacity);
        Ok(())
    }

    /// A value with its type.
    pub fn value(&mut self, value: &Value) -> Result<()> {
        if self.depth == DEPTH_MAX && *value != Value::Null {
            return Err(GremlinError::bad(format!("a value nests deeper than {DEPTH_MAX}")));
        }
        self.reserve(FIXED_BYTES_MAX)?;
        self.depth += 1;
        let written = self.typed(value);
        self.depth -= 1;
        written
    }

    fn typed(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.fixed(TypeCode::Boolean, &[u8::from(*value)]),
            Value::Byte(value) => self.fixed(TypeCode::Byte, &value.to_be_bytes()),
            Value::Short(value) => self.fixed(TypeCode::Short, &value.to_be_bytes()),
            Value::Int(value) => self.fixed(TypeCode::Int, &value.to_be_bytes()),
            Value::Long(value) => self.fixed(TypeCode::Long, &value.to_be_bytes()),
            Value::Float(value) => self.fixed(TypeCode::Float, &value.to_be_bytes()),
            Value::Double(value) => self.fixed(TypeCode::Double, &value.to_be_bytes()),
            Value::Uuid(value) => self.fixed(TypeCode::Uuid, value.as_bytes()),
            Value::Char(value) => self.fixed(TypeCode::Char, value.encode_utf8(&mut [0; 4]).as_bytes()),
            Value::BigInteger(value) => self.long(TypeCode::BigInteger, &value.to_signed_bytes_be())?,
            Value::BigDecimal(value) => self.decimal(value)?,
            Value::String(text) => self.long(TypeCode::String, text.as_bytes())?,
            Value::Class(name) => self.long(TypeCode::Class, name.as_bytes())?,
            Value::Binary(bytes) => self.long(TypeCode::ByteBuffer, bytes)?,
            Value::DateTime(time) => self.date_time(time),
            Value::Duration { seconds, nanos } => {
                self.fixed(TypeCode::Duration, &seconds.to_be_bytes());
                self.bytes.extend(nanos.to_be_bytes());
            }
            Value::List(values) => self.list(values.iter())?,
            Value::Set(values) => self.many(TypeCode::Set, values.iter())?,
            Value::Map(entries) => {
                self.head(TypeCode::Map);
                self.map(entries)?;
            }
            Value::Entry(entry) => {
                self.head(TypeCode::Map);
                self.map(&Map::from_iter([(entry.0.clone(), entry.1.clone())]))?;
            }
            Value::BulkSet(values) => self.bulk_set(values)?,
            Value::Symbol(symbol) => self.symbol(*symbol)?,
            Value::Vertex(_)
            | Value::Edge(_)
            | Value::VertexProperty(_)
            | Value::Property(_)
            | Value::Path(_) => {
                self.element(value)?;
            }
            Value::Metrics(_) | Value::TraversalMetrics(_) => self.profile(value)?,
            Value::Predicate(predicate) => self.predicate(predicate)?,
            Value::Traversal(bytecode) => self.bytecode(bytecode)?,
            Value::CardinalityValue { cardinality, value } => {
                self.bytecode(&assemble::cardinality_value(*cardinality, value))?;
            }
            Value::Traverser { bulk, value } => {
                self.fixed(TypeCode::Traverser, &bulk.to_be_bytes());
                self.value(value)?;
            }
            Value::Strategy { name, configuration } => {
                self.long(TypeCode::TraversalStrategy, name.as_bytes())?;
                self.map(configuration)?;
            }
            Value::Lambda { language, script } => {
                self.long(TypeCode::Lambda, language.as_bytes())?;
                self.string(script)?;
                self.i32(-1); // The number of its arguments is unknown.
            }
        }
        Ok(())
    }

    /// A null of no type.
    pub fn null(&mut self) {
        self.bytes.extend([TypeCode::Null as u8, 1]);
    }

    /// A type, and the flag of a value that is not null.
    pub(super) fn head(&mut self, code: TypeCode) {
        self.bytes.extend([code as u8, 0]);
    }

    /// A value of fixed length, with its type.
    fn fixed(&mut self, code: TypeCode, bytes: &[u8]) {
        self.head(code);
        self.bytes.extend_from_slice(bytes);
    }

    /// A value that begins with its length, with its type.
    fn long(&mut self, code: TypeCode, bytes: &[u8]) -> Result<()> {
        self.head(code);
        self.sized(bytes)
    }

    /// A list with its type.
    pub fn list<'a>(&mut self, values: impl ExactSizeIterator<Item = &'a Value>) -> Result<()> {
        self.many(TypeCode::List, values)
    }

    /// Several values, with their own types, behind the type of all of them.
    fn many<'a>(&mut self, code: TypeCode, values: impl ExactSizeIterator<Item = &'a Value>) -> Result<()> {
        self.head(code);
        self.values(values)
    }

    /// A list without its type and flag.
    pub fn values<'a>(&mut self, mut values: impl ExactSizeIterator<Item = &'a Value>) -> Result<()> {
        self.count(values.len())?;
        values.try_for_each(|value| self.value(value))
    }

    /// A map without its type and flag.
    pub fn map(&mut self, entries: &Map) -> Result<()> {
        self.count(entries.len())?;
        for (key, value) in entries {
            self.value(key)?;
            self.value(value)?;
        }
        Ok(())
    }

    fn bulk_set(&mut self, values: &[(Value, i64)]) -> Result<()> {
        self.head(TypeCode::BulkSet);
        self.count(values.len())?;
        for (value, bulk) in values {
            self.value(value)?;
            self.i64(*bulk);
        }
        Ok(())
    }

    fn symbol(&mut self, symbol: Symbol) -> Result<()> {
        let code = TypeCode::of_symbol(symbol);
        let code =
            code.ok_or_else(|| GremlinError::unsupported(format!("{} in GraphBinary", symbol.type_name())))?;
        self.head(code);
        self.long(TypeCode::String, symbol.name().as_bytes())
    }

    fn decimal(&mut self, value: &BigDecimal) -> Result<()> {
        let (unscaled, scale) = value.as_bigint_and_exponent();
        let Ok(scale) = i32::try_from(scale) else {
            return Err(GremlinError::bad(format!(
                "the scale of a BigDecimal is {scale}, beyond what Java can read"
            )));
        };
        self.fixed(TypeCode::BigDecimal, &scale.to_be_bytes());
        self.sized(&unscaled.to_signed_bytes_be())
    }

    fn date_time(&mut self, time: &DateTime<FixedOffset>) {
        self.fixed(TypeCode::OffsetDateTime, &time.year().to_be_bytes());
        // Months and days are less than 32.
        self.bytes.extend([time.month() as u8, time.day() as u8]);
        self.i64(time::nanos_of_day(time));
        self.i32(time.offset().local_minus_utc());
    }

    /// A UUID without its type and flag.
    pub fn uuid(&mut self, id: Uuid) {
        self.bytes.extend_from_slice(id.as_bytes());
    }

    /// A string without its type and flag.
    pub fn string(&mut self, text: &str) -> Result<()> {
        self.sized(text.as_bytes())
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// An `Int` without its type and flag.
    pub fn i32(&mut self, number: i32) {
        self.bytes.extend(number.to_be_bytes());
    }

    /// A `Long` without its type and flag.
    pub fn i64(&mut self, number: i64) {
        self.bytes.extend(number.to_be_bytes());
    }

    fn sized(&mut self, bytes: &[u8]) -> Result<()> {
        self.reserve(bytes.len() + FIXED_BYTES_MAX)?;
        self.count(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// A number of items that follow.
    pub(super) fn count(&mut self, count: usize) -> Result<()> {
        let Ok(number) = i32::try_from(count) else {
            return Err(GremlinError::bad(format!(
                "a value has {count} parts; GraphBinary has at most {}",
                i32::MAX
            )));
        };
        self.i32(number);
        Ok(())
    }
}
