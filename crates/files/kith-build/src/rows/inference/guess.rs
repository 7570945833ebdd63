//! The types that a field may still have, and how two observations are combined.

use kith_schema::{FieldType, ScalarType};
use std::fmt;

/// The known facts about a field's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    /// Nothing is known: there were only nulls so far.
    Unknown,
    One(Kind),
    /// A list with items of this kind; `None` while all lists were empty.
    List(Option<Kind>),
    Map(Option<Kind>),
    /// A declared vector.
    Vector(FieldType),
}

/// The kind of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Numbers as they are written in JSON and text.
    Number(Numbers),
    /// Any other type, or a declared one.
    Of(ScalarType),
}

/// Properties of the numbers of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    negative: bool,
    /// Whether one is above `i64::MAX`.
    huge: bool,
    /// Whether a whole number is beyond 2^53, so that `f64` may not hold it exactly.
    long: bool,
    /// Whether one has a fraction or an exponent.
    floating: bool,
    /// Whether one is a number and not only spelled as NaN or an infinity.
    finite: bool,
}

pub(super) const TEXT: Guess = Guess::One(Kind::Of(ScalarType::Text));

const LONG: u64 = 1 << 53;

impl Numbers {
    pub(super) fn whole(negative: bool, magnitude: u64) -> Self {
        let huge = !negative && i64::MAX as u64 <= magnitude && magnitude != i64::MAX as u64;
        Numbers { negative, huge, long: LONG < magnitude, floating: false, finite: true }
    }

    pub(super) fn floating() -> Self {
        Numbers { floating: true, finite: true, ..Numbers::default() }
    }

    /// NaN or an infinity. A column of nothing else is text, for these are also words.
    fn not_finite() -> Self {
        Numbers { floating: true, ..Numbers::default() }
    }

    /// The type that holds all of the numbers, if there is one.
    fn scalar(self) -> Option<ScalarType> {
        match self {
            Numbers { finite: false, .. } => Some(ScalarType::Text),
            Numbers { floating: true, long: true, .. } | Numbers { negative: true, huge: true, .. } => None,
            Numbers { floating: true, .. } => Some(ScalarType::F64),
            Numbers { huge: true, .. } => Some(ScalarType::U64),
            _ => Some(ScalarType::I64),
        }
    }

    fn join(self, other: Numbers) -> Option<Numbers> {
        let both = Numbers {
            negative: self.negative | other.negative,
            huge: self.huge | other.huge,
            long: self.long | other.long,
            floating: self.floating | other.floating,
            finite: self.finite | other.finite,
        };
        both.scalar().map(|_| both)
    }
}

impl Guess {
    pub(super) fn declared(field_type: FieldType) -> Self {
        match field_type {
            FieldType::Scalar(scalar) => Guess::One(Kind::Of(scalar)),
            FieldType::List(scalar) => Guess::List(Some(Kind::Of(scalar))),
            FieldType::Map(scalar) => Guess::Map(Some(Kind::Of(scalar))),
            FieldType::Vector { .. } => Guess::Vector(field_type),
        }
    }

    /// The type, once it is known.
    pub(super) fn field_type(&self) -> Option<FieldType> {
        match self {
            Guess::Unknown | Guess::List(None) | Guess::Map(None) => None,
            Guess::One(kind) => kind.scalar().map(FieldType::Scalar),
            Guess::List(Some(kind)) => kind.scalar().map(FieldType::List),
            Guess::Map(Some(kind)) => kind.scalar().map(FieldType::Map),
            Guess::Vector(vector) => Some(*vector),
        }
    }
}

impl Kind {
    fn scalar(self) -> Option<ScalarType> {
        match self {
            Kind::Number(numbers) => numbers.scalar(),
            Kind::Of(scalar) => Some(scalar),
        }
    }

    fn join(self, other: Kind) -> Option<Kind> {
        if let (Kind::Number(a), Kind::Number(b)) = (self, other) {
            return a.join(b).map(Kind::Number);
        }
        if self == other {
            return Some(self);
        }
        // Declared types, or a declared and a written one: the type that both widen to.
        use ScalarType::{F32, F64, I32, I64};
        let wide = match (self.scalar()?, other.scalar()?) {
            (a, b) if a == b => a,
            (I32, I64) | (I64, I32) => I64,
            (F32, F64) | (F64, F32) => F64,
            (I32 | I64, F32 | F64) | (F32 | F64, I32 | I64) => F64,
            _ => return None,
        };
        Some(Kind::Of(wide))
    }
}

/// Combines two observations; `None` if they are incompatible.
pub(super) fn join(first: Guess, then: Guess) -> Option<Guess> {
    let items = |a: Option<Kind>, b: Option<Kind>| match (a, b) {
        (Some(a), Some(b)) => a.join(b).map(Some),
        (a, b) => Some(a.or(b)),
    };
    match (first, then) {
        (Guess::Unknown, other) | (other, Guess::Unknown) => Some(other),
        (Guess::One(a), Guess::One(b)) => a.join(b).map(Guess::One),
        (Guess::List(a), Guess::List(b)) => items(a, b).map(Guess::List),
        (Guess::Map(a), Guess::Map(b)) => items(a, b).map(Guess::Map),
        (Guess::Vector(a), Guess::Vector(b)) if a == b => Some(Guess::Vector(a)),
        _ => None,
    }
}

/// The kind of a cell of a text table. It counts as a number only if its text can be restored from the number: without
/// leading zeros or signs that would be lost, and with no more digits than 64 bits have.
pub(super) fn spelled(cell: &str) -> Guess {
    let negative = cell.starts_with('-');
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let whole =
        digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()));
    if matches!(cell, "true" | "false") {
        return Guess::One(Kind::Of(ScalarType::Bool));
    }
    if whole && !digits.is_empty() && cell != "-0" {
        let magnitude = digits.parse::<u64>().ok();
        let fits = |&magnitude: &u64| !negative || magnitude <= i64::MIN.unsigned_abs();
        let number = |magnitude| Guess::One(Kind::Number(Numbers::whole(negative, magnitude)));
        return magnitude.filter(fits).map_or(TEXT, number);
    }
    let is_word = digits.trim_start_matches('+').starts_with(|first: char| first.is_ascii_alphabetic());
    if is_word && cell.parse::<f64>().is_ok() {
        return Guess::One(Kind::Number(Numbers::not_finite()));
    }
    let shape = digits.starts_with(|first: char| first.is_ascii_digit())
        && !(digits.starts_with('0') && digits[1..].starts_with(|next: char| next.is_ascii_digit()))
        && digits.contains(['.', 'e', 'E']);
    let finite = shape && cell.parse::<f64>().is_ok_and(f64::is_finite);
    if finite { Guess::One(Kind::Number(Numbers::floating())) } else { TEXT }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Of(scalar) => write!(f, "{scalar}"),
            Kind::Number(Numbers { floating: false, huge: false, long: true, .. }) => {
                f.write_str("i64 beyond 2^53")
            }
            Kind::Number(Numbers { negative: true, floating: false, .. }) => f.write_str("i64 below 0"),
            Kind::Number(numbers) => match numbers.scalar() {
                Some(scalar) => write!(f, "{scalar}"),
                None => f.write_str("numbers of no one type"),
            },
        }
    }
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Guess::Unknown => f.write_str("null"),
            Guess::One(kind) => write!(f, "{kind}"),
            Guess::List(Some(kind)) => write!(f, "list<{kind}>"),
            Guess::Map(Some(kind)) => write!(f, "map<text,{kind}>"),
            Guess::List(None) => f.write_str("an empty list"),
            Guess::Map(None) => f.write_str("an empty map"),
            Guess::Vector(vector) => write!(f, "{vector}"),
        }
    }
}
