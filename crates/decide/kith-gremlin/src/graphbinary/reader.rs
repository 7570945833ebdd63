//! Reads values from bytes.

use super::{
    DEPTH_MAX, code::TypeCode, elements::ElementReader, scalars::ScalarReader, traversals::TraversalReader,
};
use crate::{
    error::{GremlinError, Result},
    room::{ELEMENT, ENTRY, HEAD, Room, VALUE},
    value::{Map, Set, Value, numbers},
};
use bytes::Bytes;
use kith_types::ErrorCode;
use std::sync::Arc;
use uuid::Uuid;

/// Without a bound of memory, room for this many items is made before they are read. More is made as they arrive, so that nested
/// lists which claim a huge length do not take memory.
const CAPACITY_FIRST_MAX: usize = 32;

/// Reads one value after another.
///
/// Each method fails if the bytes end early or are not what it reads; the message names the position within the whole input.
#[derive(Debug)]
pub struct Reader<'a> {
    input: &'a [u8],
    offset: usize,
    depth: usize,
    /// `None` if memory is not bounded.
    room: Option<&'a mut Room>,
}

impl<'a> Reader<'a> {
    /// A reader of all of `input`.
    pub fn new(input: &'a [u8]) -> Self {
        Self::starting_at(input, 0)
    }

    /// A reader that begins `offset` bytes after the start of `input`; errors count from the start.
    pub fn starting_at(input: &'a [u8], offset: usize) -> Self {
        Self { input, offset: offset.min(input.len()), depth: 0, room: None }
    }

    /// The same reader, whose values take no more memory than there is room.
    pub fn within(self, room: &'a mut Room) -> Self {
        let room = Some(room).filter(|room| !room.is_unbounded());
        Self { room, ..self }
    }

    /// Takes room for what is allocated next.
    pub(super) fn take_room(&mut self, bytes: usize) -> Result<()> {
        self.room.as_mut().map_or(Ok(()), |room| room.take(bytes))
    }

    /// The room that was taken so far.
    pub(super) fn taken(&self) -> usize {
        self.room.as_ref().map_or(0, |room| room.taken())
    }

    /// Takes room for `count` items of this size, and returns for how many the list is to be made.
    fn capacity(&mut self, count: usize, item_bytes: usize) -> Result<usize> {
        match &mut self.room {
            Some(room) => room.take(count.saturating_mul(item_bytes).saturating_add(HEAD)).map(|()| count),
            None => Ok(count.min(CAPACITY_FIRST_MAX)),
        }
    }

    /// Takes room for `count` instructions, and returns for how many the list is to be made.
    pub(super) fn instruction_capacity(&mut self, count: usize) -> Result<usize> {
        match &mut self.room {
            Some(room) => room.take_instructions(count).map(|()| count),
            None => Ok(count.min(CAPACITY_FIRST_MAX)),
        }
    }

    /// The number of bytes read so far, and of those before the start.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.offset == self.input.len()
    }

    /// Checks that nothing is left.
    pub fn finish(&self) -> Result<()> {
        let left = self.remaining();
        if left == 0 {
            Ok(())
        } else {
            Err(self.error_at(self.offset, format!("{left} bytes follow the end")))
        }
    }

    /// A value with its type.
    pub fn value(&mut self) -> Result<Value> {
        let start = self.offset;
        let byte = self.byte()?;
        let Some(code) = TypeCode::from_repr(byte) else {
            return Err(self.error_at(start, format!("no type has the code 0x{byte:02x}")));
        };
        if code == TypeCode::Custom {
            let name = self.string()?;
            return Err(self.unsupported_at(start, &format!("the custom type {name:?}")));
        }
        if self.flag()? {
            return Ok(Value::Null);
        }
        if self.depth == DEPTH_MAX {
            return Err(self.error_at(start, format!("values nest deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let value = self.value_of(code, start);
        self.depth -= 1;
        value
    }

    /// The bytes of a value whose type and flag were read.
    fn value_of(&mut self, code: TypeCode, start: usize) -> Result<Value> {
        use TypeCode::*;
        self.take_room(head(code))?;
        Ok(match code {
            Int => Value::Int(self.i32()?),
            Long => Value::Long(self.i64()?),
            Byte => Value::Byte(i8::from_be_bytes(self.array()?)),
            Short => Value::Short(i16::from_be_bytes(self.array()?)),
            Double => Value::Double(f64::from_be_bytes(self.array()?)),
            Float => Value::Float(f32::from_be_bytes(self.array()?)),
            Boolean => Value::Bool(self.flag()?),
            String => Value::String(self.string()?),
            Class => Value::Class(self.string()?),
            Uuid => Value::Uuid(self.uuid()?),
            Char => Value::Char(ScalarReader(self).char()?),
            ByteBuffer => {
                let bytes = self.sized()?;
                self.take_room(HEAD + bytes.len())?;
                Value::Binary(Bytes::copy_from_slice(bytes))
            }
            BigInteger => Value::BigInteger(Arc::new(ScalarReader(self).big_integer()?)),
            BigDecimal => {
                let scale = i64::from(self.i32()?);
                let unscaled = ScalarReader(self).big_integer()?;
                numbers::decimal(unscaled, scale).map_err(|error| self.located(start, error))?
            }
            Date | Timestamp | Instant | OffsetDateTime | ZonedDateTime | Duration => {
                ScalarReader(self).time(code, start)?
            }
            List => Value::List(Arc::new(self.list()?)),
            Set => {
                let values = self.list()?;
                self.take_room(values.len() * ENTRY)?;
                Value::Set(Arc::new(values.into_iter().collect::<self::Set>()))
            }
            Map => Value::Map(Arc::new(self.map()?)),
            BulkSet => self.bulk_set()?,
            Vertex | Edge | VertexProperty | Property | Path => ElementReader(self).element(code, start)?,
            Metrics | TraversalMetrics => ElementReader(self).profile(code, start)?,
            Bytecode | Binding | P | TextP | Lambda | TraversalStrategy | Traverser => {
                TraversalReader(self).part_of_traversal(code)?
            }
            Barrier | Cardinality | Column | Direction | Operator | Order | Pick | Pop | Scope | Token
            | Merge | DateUnit | GType => ScalarReader(self).symbol(code)?,
            Graph | Tree | InetAddress | LocalDate | LocalDateTime | LocalTime | MonthDay | OffsetTime
            | Period | Year | YearMonth | ZoneOffset | Custom => {
                let what = format!("the type {} (0x{:02x})", code.name(), code as u8);
                return Err(self.unsupported_at(start, &what));
            }
            Null => return Err(self.error_at(start, "a null has the flag of a value")),
        })
    }

    /// A map without its type and flag.
    pub fn map(&mut self) -> Result<Map> {
        let count = self.count(4)?;
        let mut map = Map::with_capacity(self.capacity(count, ENTRY)?);
        for _ in 0..count {
            let key = self.value()?;
            map.insert(key, self.value()?);
        }
        Ok(map)
    }

    /// A list without its type and flag.
    pub(super) fn list(&mut self) -> Result<Vec<Value>> {
        let count = self.count(2)?;
        self.values(count)
    }

    /// `count` values with their types. The caller has checked that the input is long enough for them.
    pub(super) fn values(&mut self, count: usize) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(self.capacity(count, VALUE)?);
        for _ in 0..count {
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn bulk_set(&mut self) -> Result<Value> {
        let count = self.count(10)?;
        let mut values = Vec::with_capacity(self.capacity(count, VALUE + HEAD)?);
        for _ in 0..count {
            let value = self.value()?;
            values.push((value, self.i64()?));
        }
        Ok(Value::BulkSet(Arc::new(values)))
    }

    /// A UUID without its type and flag.
    pub fn uuid(&mut self) -> Result<Uuid> {
        self.array().map(Uuid::from_bytes)
    }

    /// A string without its type and flag.
    pub fn string(&mut self) -> Result<Arc<str>> {
        let start = self.offset;
        let bytes = self.sized()?;
        self.take_room(HEAD + bytes.len())?;
        std::str::from_utf8(bytes).map(Arc::from).map_err(|_| self.error_at(start, "a string is not UTF-8"))
    }

    /// A flag: whether a value is null, or a Boolean.
    pub(super) fn flag(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            flag => Err(self.error_at(self.offset - 1, format!("a flag is 0x{flag:02x}, neither 0 nor 1"))),
        }
    }

    /// An `Int` without its type and flag.
    pub fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// A `Long` without its type and flag.
    pub fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// As many bytes as the length before them says.
    pub(super) fn sized(&mut self) -> Result<&'a [u8]> {
        let length = self.count(1)?;
        self.take(length)
    }

    /// A number of items, each of at least `item_bytes` bytes, which fit into what is left.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize> {
        let start = self.offset;
        let count = self.i32()?;
        let left = self.remaining();
        let fitting = usize::try_from(count).ok().filter(|count| *count <= left / item_bytes);
        fitting.ok_or_else(|| self.error_at(start, format!("a length is {count}, but {left} bytes are left")))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let rest = &self.input[self.offset..];
        let Some((taken, _)) = rest.split_at_checked(length) else {
            let message = format!("the input ends: {length} bytes are needed, {} are left", rest.len());
            return Err(self.error_at(self.offset, message));
        };
        self.offset += length;
        Ok(taken)
    }

    /// The next byte, which stays to be read.
    pub(super) fn peek(&self) -> Option<u8> {
        self.input.get(self.offset).copied()
    }

    fn remaining(&self) -> usize {
        self.input.len() - self.offset
    }

    /// An error about the byte at `offset`.
    pub fn error_at(&self, offset: usize, message: impl AsRef<str>) -> GremlinError {
        GremlinError::bad(format!("GraphBinary, byte {offset}: {}", message.as_ref()))
    }

    fn unsupported_at(&self, offset: usize, what: &str) -> GremlinError {
        GremlinError::new(
            ErrorCode::UnsupportedOperation,
            format!("GraphBinary, byte {offset}: {what} is not supported"),
        )
    }

    /// The same error, with the position.
    pub(super) fn located(&self, offset: usize, error: GremlinError) -> GremlinError {
        self.error_at(offset, error.message)
    }
}

/// The memory of a value besides its place in a list, and the values, texts and bytes in it.
fn head(code: TypeCode) -> usize {
    use TypeCode::*;
    match code {
        Int | Long | Byte | Short | Double | Float | Boolean | Uuid | Char | Null => 0,
        Vertex | Edge | VertexProperty | Property | Path | Metrics | TraversalMetrics => ELEMENT,
        BigInteger | BigDecimal => 3 * HEAD,
        Bytecode | Binding | P | TextP | Lambda | TraversalStrategy | Traverser => 3 * HEAD,
        _ => HEAD,
    }
}
