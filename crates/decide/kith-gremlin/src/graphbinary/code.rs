//! The numbers of the types.

use crate::value::Symbol;
use strum::{EnumString, FromRepr, IntoStaticStr};

/// A type of GraphBinary 1.0. The names are those that messages use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, FromRepr, IntoStaticStr)]
#[repr(u8)]
pub enum TypeCode {
    Custom = 0x00,
    Int = 0x01,
    Long = 0x02,
    String = 0x03,
    Date = 0x04,
    Timestamp = 0x05,
    Class = 0x06,
    Double = 0x07,
    Float = 0x08,
    List = 0x09,
    Map = 0x0a,
    Set = 0x0b,
    #[strum(serialize = "UUID")]
    Uuid = 0x0c,
    Edge = 0x0d,
    Path = 0x0e,
    Property = 0x0f,
    Graph = 0x10,
    Vertex = 0x11,
    VertexProperty = 0x12,
    Barrier = 0x13,
    Binding = 0x14,
    Bytecode = 0x15,
    Cardinality = 0x16,
    Column = 0x17,
    Direction = 0x18,
    Operator = 0x19,
    Order = 0x1a,
    Pick = 0x1b,
    Pop = 0x1c,
    Lambda = 0x1d,
    P = 0x1e,
    Scope = 0x1f,
    #[strum(serialize = "T")]
    Token = 0x20,
    Traverser = 0x21,
    BigDecimal = 0x22,
    BigInteger = 0x23,
    Byte = 0x24,
    ByteBuffer = 0x25,
    Short = 0x26,
    Boolean = 0x27,
    TextP = 0x28,
    TraversalStrategy = 0x29,
    BulkSet = 0x2a,
    Tree = 0x2b,
    Metrics = 0x2c,
    TraversalMetrics = 0x2d,
    Merge = 0x2e,
    #[strum(serialize = "DT")]
    DateUnit = 0x2f,
    GType = 0x30,
    Char = 0x80,
    Duration = 0x81,
    InetAddress = 0x82,
    Instant = 0x83,
    LocalDate = 0x84,
    LocalDateTime = 0x85,
    LocalTime = 0x86,
    MonthDay = 0x87,
    OffsetDateTime = 0x88,
    OffsetTime = 0x89,
    Period = 0x8a,
    Year = 0x8b,
    YearMonth = 0x8c,
    ZonedDateTime = 0x8d,
    ZoneOffset = 0x8e,
    Null = 0xfe,
}

impl TypeCode {
    /// The name of the type in TinkerPop.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The code of the enumeration of a symbol. `None` if GraphBinary has no code for it.
    pub fn of_symbol(symbol: Symbol) -> Option<Self> {
        symbol.type_name().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{DateUnit, GType, Merge, Token};

    #[test]
    fn every_enumeration_has_the_code_of_its_name() {
        let codes = [
            (Symbol::from(Token::Id), 0x20),
            (DateUnit::Day.into(), 0x2f),
            (GType::Int.into(), 0x30),
            (Merge::OnMatch.into(), 0x2e),
        ];
        for (symbol, code) in codes {
            assert_eq!(TypeCode::of_symbol(symbol).map(|code| code as u8), Some(code), "{symbol:?}");
        }
    }
}
