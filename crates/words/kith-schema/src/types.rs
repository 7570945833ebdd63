//! The types of fields, and their spelling.

use crate::language::TypeError;
use crate::nearest;
use std::fmt;
use std::str::FromStr;
use strum::IntoStaticStr;

/// The most dimensions of a vector: 256 KiB of `f32`, far more than any embedding in use.
pub const DIMENSIONS_MAX: u32 = 65_536;

/// The type of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ScalarType {
    /// `false` or `true`.
    Bool,
    /// A signed whole number of 32 bits.
    I32,
    /// A signed whole number of 64 bits.
    I64,
    /// A whole number of 64 bits that is not negative, such as an id.
    U64,
    /// A finite number in single precision.
    F32,
    /// A finite number in double precision.
    F64,
    /// UTF-8 text.
    Text,
    /// Any bytes; base64 in JSON.
    Bytes,
    /// Milliseconds since 1970-01-01 UTC, which may be negative.
    Timestamp,
}

/// The type of a vector's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ElementType {
    /// Single precision.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// A whole number from -128 to 127.
    I8,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldType {
    /// One value.
    Scalar(ScalarType),
    /// A fixed number of elements.
    Vector {
        /// The type of the elements.
        element: ElementType,
        /// The number of elements: 1 to [`DIMENSIONS_MAX`].
        dimensions: u32,
    },
    /// Any number of values of one type in order, none of them null.
    List(ScalarType),
    /// Distinct texts, each with a value of one type, none of them null.
    Map(ScalarType),
}

impl ScalarType {
    /// All types, in the order of the documentation.
    pub const ALL: [ScalarType; 9] = [
        ScalarType::Bool,
        ScalarType::I32,
        ScalarType::I64,
        ScalarType::U64,
        ScalarType::F32,
        ScalarType::F64,
        ScalarType::Text,
        ScalarType::Bytes,
        ScalarType::Timestamp,
    ];

    /// The name in schemas.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The size of a value in bytes; `None` if it varies.
    pub fn width(self) -> Option<usize> {
        match self {
            ScalarType::Bool => Some(1),
            ScalarType::I32 | ScalarType::F32 => Some(4),
            ScalarType::I64 | ScalarType::U64 | ScalarType::F64 | ScalarType::Timestamp => Some(8),
            ScalarType::Text | ScalarType::Bytes => None,
        }
    }

    /// Whether every value of this type is exactly a value of `other`: for the same type, `i32` in `i64`, and `f32` in
    /// `f64`.
    pub fn widens_to(self, other: ScalarType) -> bool {
        self == other
            || matches!(
                (self, other),
                (ScalarType::I32, ScalarType::I64) | (ScalarType::F32, ScalarType::F64)
            )
    }
}

impl ElementType {
    /// All types, in the order of the documentation.
    pub const ALL: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::I8];

    /// The name in schemas.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The size of an element in bytes.
    pub fn width(self) -> usize {
        match self {
            ElementType::F32 => 4,
            ElementType::F16 => 2,
            ElementType::I8 => 1,
        }
    }
}

impl FieldType {
    /// Whether every value of this type is a value of `other`.
    pub(crate) fn widens_to(self, other: FieldType) -> bool {
        match (self, other) {
            (FieldType::Scalar(old), FieldType::Scalar(new)) => old.widens_to(new),
            _ => self == other,
        }
    }

    /// The size in the fixed part of a record in bytes; `None` for types that lie in the variable part.
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            FieldType::Scalar(scalar) => scalar.width(),
            FieldType::Vector { element, dimensions } => Some(element.width() * dimensions as usize),
            FieldType::List(_) | FieldType::Map(_) => None,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldType::Scalar(scalar) => write!(f, "{scalar}"),
            FieldType::Vector { element, dimensions } => write!(f, "vector<{element},{dimensions}>"),
            FieldType::List(scalar) => write!(f, "list<{scalar}>"),
            FieldType::Map(scalar) => write!(f, "map<text,{scalar}>"),
        }
    }
}

impl FromStr for FieldType {
    type Err = TypeError;

    /// Parses a type. White space around its parts is allowed; `Display` writes none.
    fn from_str(text: &str) -> Result<Self, TypeError> {
        let text = text.trim();
        let Some((outer, rest)) = text.split_once('<') else { return scalar(text).map(FieldType::Scalar) };
        let inner = rest.strip_suffix('>').ok_or_else(|| TypeError::Unclosed { text: text.to_owned() })?;
        let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
        match (outer.trim(), parts.as_slice()) {
            ("list", [item]) => scalar(item).map(FieldType::List),
            ("map", ["text", value]) => scalar(value).map(FieldType::Map),
            ("vector", [item, count]) => {
                let element = ElementType::ALL.into_iter().find(|element| element.name() == *item);
                let element = element.ok_or_else(|| TypeError::Element { text: (*item).to_owned() })?;
                let dimensions = count.bytes().all(|byte| byte.is_ascii_digit()).then(|| count.parse().ok());
                let dimensions = dimensions.flatten().filter(|count| (1..=DIMENSIONS_MAX).contains(count));
                let dimensions =
                    dimensions.ok_or_else(|| TypeError::Dimensions { text: (*count).to_owned() })?;
                Ok(FieldType::Vector { element, dimensions })
            }
            ("list" | "map" | "vector", _) => Err(TypeError::Parts { text: text.to_owned() }),
            (outer, _) => Err(unknown(outer, text)),
        }
    }
}

fn scalar(text: &str) -> Result<ScalarType, TypeError> {
    ScalarType::ALL.into_iter().find(|scalar| scalar.name() == text).ok_or_else(|| unknown(text, text))
}

fn unknown(word: &str, text: &str) -> TypeError {
    let known = ScalarType::ALL.into_iter().map(ScalarType::name).chain(["vector", "list", "map"]);
    TypeError::Unknown { text: text.to_owned(), near: other_name(word).or_else(|| nearest(word, known)) }
}

/// The type that another system's name stands for.
fn other_name(word: &str) -> Option<String> {
    let ours = match word.to_ascii_lowercase().as_str() {
        "string" | "str" | "utf8" | "varchar" => "text",
        "int" | "integer" | "int32" => "i32",
        "long" | "bigint" | "int64" => "i64",
        "ulong" | "uint64" | "id" => "u64",
        "float" | "float32" | "real" => "f32",
        "double" | "float64" | "number" => "f64",
        "boolean" => "bool",
        "binary" | "blob" => "bytes",
        "date" | "datetime" | "time" => "timestamp",
        "array" => "list",
        _ => return None,
    };
    Some(ours.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_spelled_and_read_back() {
        let vector = FieldType::Vector { element: ElementType::F16, dimensions: 64 };
        let mut all = vec![vector];
        for scalar in ScalarType::ALL {
            all.extend([FieldType::Scalar(scalar), FieldType::List(scalar), FieldType::Map(scalar)]);
        }
        for field_type in all {
            assert_eq!(field_type.to_string().parse(), Ok(field_type));
        }
        assert_eq!(" vector< f16 , 64 > ".parse(), Ok(vector));
    }

    #[test]
    fn wrong_types_say_what_was_meant() {
        let error = |text: &str| text.parse::<FieldType>().unwrap_err().to_string();
        assert!(error("string").ends_with("did you mean \"text\"?"), "{}", error("string"));
        assert!(error("timestmap").ends_with("did you mean \"timestamp\"?"));
        assert!(error("list<double>").ends_with("did you mean \"f64\"?"));
        assert!(error("vector<f32>").contains("vector<f32,64>"));
        assert!(error("list<text").contains("not closed"));
        for wrong in
            ["vector<f32,0>", "vector<f32,65537>", "vector<f32,-1>", "vector<f32,+1>", "vector<f32,>"]
        {
            assert!(error(wrong).contains("1 to 65536"), "{wrong}: {}", error(wrong));
        }
        assert!(error("vector<f64,3>").contains("f32, f16 or i8"));
        assert!(error("map<i64,text>").contains("map<text,f64>"));
    }
}
