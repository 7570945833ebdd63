//! Reads values with their types. Collections, elements and traversals are read together here, because each has values as
//! parts.

use super::{Reader, code::TypeCode, scalars::ScalarReader};
use crate::{
    assemble,
    bytecode::{Bytecode, Instruction},
    error::Result,
    room::{ELEMENT, ENTRY, HEAD, VALUE},
    value::{
        Edge, Map, Metrics, Property, Set, Symbol, TraversalMetrics, Value, Vertex, VertexProperty, numbers,
    },
};
use bytes::Bytes;
use std::sync::Arc;

impl Reader<'_> {
    /// A value with its type.
    pub fn value(&mut self) -> Result<Value> {
        let start = self.offset();
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
        self.deeper(start, |reader| reader.value_of(code, start))
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
            | Merge | DateUnit | GType => self.symbol(code)?,
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
    fn list(&mut self) -> Result<Vec<Value>> {
        let count = self.count(2)?;
        self.values(count)
    }

    /// `count` values with their types. The caller has checked that the input is long enough for them.
    fn values(&mut self, count: usize) -> Result<Vec<Value>> {
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

    fn symbol(&mut self, code: TypeCode) -> Result<Value> {
        let start = self.offset();
        let name = self.value()?;
        let symbol = name.as_text().and_then(|name| Symbol::parse(code.name(), name));
        symbol
            .map(Value::Symbol)
            .ok_or_else(|| self.error_at(start, format!("{} has no value {name}", code.name())))
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

/// Reads elements, paths and profiles from the bytes of a reader.
struct ElementReader<'r, 'a>(&'r mut Reader<'a>);

impl ElementReader<'_, '_> {
    /// A value of one of these types whose type and flag were read.
    fn element(&mut self, code: TypeCode, start: usize) -> Result<Value> {
        Ok(match code {
            TypeCode::Vertex => {
                let vertex = Vertex::reference(self.0.value()?, self.0.string()?);
                let properties = self.properties(assemble::vertex_property)?;
                Value::Vertex(Arc::new(Vertex { properties, ..vertex }))
            }
            TypeCode::Edge => self.edge()?,
            TypeCode::VertexProperty => self.vertex_property()?,
            TypeCode::Property => Value::Property(Arc::new(Property {
                key: self.0.string()?,
                value: self.0.value()?,
                element: Some(self.0.value()?).filter(|element| *element != Value::Null),
            })),
            _ => {
                let before = self.0.taken();
                let labels = self.0.value()?;
                // The sets are copied.
                self.0.take_room(self.0.taken() - before)?;
                let objects = self.0.value()?;
                assemble::path(&labels, objects).map_err(|error| self.0.located(start, error))?
            }
        })
    }

    fn edge(&mut self) -> Result<Value> {
        let (id, label) = (self.0.value()?, self.0.string()?);
        let in_vertex = self.reference()?;
        let out_vertex = self.reference()?;
        self.0.value()?; // The graph of the edge, which is always null.
        let properties = self.properties(assemble::property)?;
        Ok(Value::Edge(Arc::new(Edge { id, label, out_vertex, in_vertex, properties })))
    }

    /// The id and the label of a vertex at an end of an edge.
    fn reference(&mut self) -> Result<Arc<Vertex>> {
        Ok(Arc::new(Vertex::reference(self.0.value()?, self.0.string()?)))
    }

    fn vertex_property(&mut self) -> Result<Value> {
        let (id, key, value) = (self.0.value()?, self.0.string()?, self.0.value()?);
        let vertex = match self.0.value()? {
            Value::Vertex(vertex) => Some(vertex),
            _ => None,
        };
        let properties = self.properties(assemble::property)?.unwrap_or_default();
        Ok(Value::VertexProperty(Arc::new(VertexProperty { id, key, value, vertex, properties })))
    }

    /// A list of properties; `None` if it is null.
    fn properties<T>(&mut self, of_value: impl Fn(Value) -> Result<T>) -> Result<Option<Vec<T>>> {
        let start = self.0.offset();
        let properties = match self.0.value()? {
            Value::Null => return Ok(None),
            Value::List(list) => Arc::unwrap_or_clone(list).into_iter().map(of_value).collect(),
            other => Err(assemble::wanted("the properties of an element", "a List", &other)),
        };
        properties.map(Some).map_err(|error| self.0.located(start, error))
    }

    /// The result of `profile()`.
    fn profile(&mut self, code: TypeCode, start: usize) -> Result<Value> {
        if code == TypeCode::TraversalMetrics {
            let nanos = self.0.i64()?;
            let steps = self.nested_metrics(start)?;
            return Ok(Value::TraversalMetrics(Arc::new(TraversalMetrics { nanos, steps })));
        }
        let (id, name) = (self.0.string()?.to_string(), self.0.string()?.to_string());
        let nanos = self.0.i64()?;
        let counts = self.0.map()?;
        let counts = assemble::counts(counts).map_err(|error| self.0.located(start, error))?;
        let annotations = self.0.map()?.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let nested = self.nested_metrics(start)?;
        Ok(Value::Metrics(Arc::new(Metrics { id, name, nanos, counts, annotations, nested })))
    }

    fn nested_metrics(&mut self, start: usize) -> Result<Vec<Metrics>> {
        let values = self.0.list()?;
        let metrics: Result<_> = values.into_iter().map(assemble::metrics).collect();
        metrics.map_err(|error| self.0.located(start, error))
    }
}

/// Reads traversals and their parts from the bytes of a reader.
struct TraversalReader<'r, 'a>(&'r mut Reader<'a>);

impl TraversalReader<'_, '_> {
    /// A value of one of these types whose type and flag were read.
    fn part_of_traversal(&mut self, code: TypeCode) -> Result<Value> {
        Ok(match code {
            TypeCode::Bytecode => {
                let steps = self.instructions()?;
                assemble::traversal(Bytecode { sources: self.instructions()?, steps })
            }
            TypeCode::Binding => {
                self.0.string()?;
                self.0.value()?
            }
            TypeCode::Lambda => {
                let (language, script) = (self.0.string()?, self.0.string()?);
                self.0.i32()?; // The number of its arguments.
                Value::Lambda { language, script }
            }
            TypeCode::TraversalStrategy => {
                let class = self.0.string()?;
                assemble::strategy(&class, self.0.map()?)
            }
            TypeCode::Traverser => {
                let bulk = self.0.i64()?;
                Value::Traverser { bulk, value: Arc::new(self.0.value()?) }
            }
            _ => {
                let operator = self.0.string()?;
                let count = self.0.count(2)?;
                assemble::predicate(operator, self.0.values(count)?)
            }
        })
    }

    fn instructions(&mut self) -> Result<Vec<Instruction>> {
        let count = self.0.count(8)?;
        let mut instructions = Vec::with_capacity(self.0.instruction_capacity(count)?);
        for _ in 0..count {
            let name = self.0.string()?;
            let arguments = self.0.count(2)?;
            instructions.push(Instruction { name, arguments: self.0.values(arguments)? });
        }
        Ok(instructions)
    }
}
