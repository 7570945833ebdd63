//! The enumerations of Gremlin.

use strum::{Display, EnumString, IntoStaticStr, VariantNames};

/// Declares enumerations whose values have the same names in Gremlin text, GraphBinary and GraphSON.
macro_rules! enumerations {
    ($($(#[$doc:meta])* $name:ident as $java:literal { $($variant:ident = $text:literal),+ $(,)? })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantNames)]
            #[allow(missing_docs, reason = "TinkerPop's documentation explains the values")]
            pub enum $name { $(#[strum(serialize = $text)] $variant),+ }

            impl From<$name> for Symbol {
                fn from(value: $name) -> Self {
                    Self::$name(value)
                }
            }
        )+

        /// A value of one of Gremlin's enumerations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each variant has the name of its type")]
        pub enum Symbol { $($name($name)),+ }

        impl Symbol {
            /// The names of all enumerations.
            pub const TYPE_NAMES: &'static [&'static str] = &[$($java),+];

            /// The name of its enumeration in TinkerPop, such as `T` or `Order`.
            pub fn type_name(self) -> &'static str {
                match self { $(Self::$name(_) => $java),+ }
            }

            /// Its own name, such as `desc`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name(value) => value.into()),+ }
            }

            /// The value with this name of the enumeration that TinkerPop calls `type_name`.
            pub fn parse(type_name: &str, name: &str) -> Option<Self> {
                match type_name {
                    $($java => name.parse::<$name>().ok().map(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

enumerations! {
    /// The members that have a name of their own in every element.
    Token as "T" { Id = "id", Label = "label", Key = "key", Value = "value" }
    /// A direction of edges.
    Direction as "Direction" { Out = "OUT", In = "IN", Both = "BOTH" }
    /// An order of values.
    Order as "Order" { Ascending = "asc", Descending = "desc", Shuffle = "shuffle" }
    /// Which of several values with one label `select` takes.
    Pop as "Pop" { First = "first", Last = "last", All = "all", Mixed = "mixed" }
    /// Whether a step is about all traversers or about the value of each.
    Scope as "Scope" { Local = "local", Global = "global" }
    /// Which half of map entries.
    Column as "Column" { Keys = "keys", Values = "values" }
    /// How many values a key may have.
    Cardinality as "Cardinality" { Single = "single", List = "list", Set = "set" }
    /// How side effects and sacks are combined.
    Operator as "Operator" {
        Sum = "sum", Minus = "minus", Multiply = "mult", Divide = "div", Minimum = "min", Maximum = "max",
        Assign = "assign", And = "and", Or = "or", AddAll = "addAll", SumLong = "sumLong",
    }
    /// The options of `mergeV` and `mergeE`.
    Merge as "Merge" { OnCreate = "onCreate", OnMatch = "onMatch", OutV = "outV", InV = "inV" }
    /// The options of `branch` and `choose` besides values.
    Pick as "Pick" { Any = "any", None = "none", Unproductive = "unproductive" }
    /// Units of `dateAdd`.
    DateUnit as "DT" { Second = "second", Minute = "minute", Hour = "hour", Day = "day" }
    /// The effect of `barrier` on sacks.
    Barrier as "Barrier" { NormSack = "normSack" }
    /// Types for `typeOf` and `asNumber`.
    GType as "GType" {
        BigDecimal = "BIGDECIMAL", BigInt = "BIGINT", Binary = "BINARY", Boolean = "BOOLEAN", Byte = "BYTE",
        Char = "CHAR", DateTime = "DATETIME", Double = "DOUBLE", Duration = "DURATION", Edge = "EDGE",
        Float = "FLOAT", Graph = "GRAPH", Int = "INT", List = "LIST", Long = "LONG", Map = "MAP", Null = "NULL",
        Number = "NUMBER", Path = "PATH", Property = "PROPERTY", Set = "SET", Short = "SHORT", String = "STRING",
        Tree = "TREE", Uuid = "UUID", Vertex = "VERTEX", VertexProperty = "VPROPERTY",
    }
}
