//! Passes one JSON value, while it is parsed, to its receiver: a field, or an item of a list or map.

use super::items::{Entries, Items};
use super::{Scalar, ValueFault};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Receives one JSON value.
pub(super) trait Taker<'de>: Sized {
    /// The expected values, for messages.
    const EXPECTED: &'static str;

    fn scalar<E: Error>(self, value: Scalar<'_>) -> Result<(), E>;

    fn text<E: Error>(self, text: &str) -> Result<(), E>;

    fn null<E: Error>(self) -> Result<(), E>;

    fn list<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error>;

    fn object<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error>;
}

/// Parses the next JSON value for a [`Taker`].
pub(super) struct Value<T>(pub(super) T);

impl<'de, T: Taker<'de>> DeserializeSeed<'de> for Value<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Taker<'de>> Visitor<'de> for Value<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.scalar(Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.scalar(Scalar::I64(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.scalar(Scalar::U64(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0.scalar(Scalar::F64(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.text(text)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.null()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.0.list(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.object(map)
    }
}

/// The destination of an item.
pub(super) enum ItemDestination<'s, 'w> {
    List(&'s mut Items<'w>),
    Map(&'s str, &'s mut Entries),
}

/// Receives an item of a list or map.
pub(super) struct ItemTaker<'s, 'w> {
    pub(super) to: ItemDestination<'s, 'w>,
    /// Receives the fault, because errors of serde are texts.
    pub(super) fault: &'s mut Option<ValueFault>,
}

impl<'de> Taker<'de> for ItemTaker<'_, '_> {
    const EXPECTED: &'static str = "a number, a text, false or true";

    fn scalar<E: Error>(self, value: Scalar<'_>) -> Result<(), E> {
        let pushed = match self.to {
            ItemDestination::List(items) => items.push(value),
            ItemDestination::Map(key, entries) => entries.push(key, value),
        };
        pushed.map_err(|fault| refuse(self.fault, fault))
    }

    fn text<E: Error>(self, text: &str) -> Result<(), E> {
        let pushed = match self.to {
            ItemDestination::List(items) => items.push_json_text(text),
            ItemDestination::Map(key, entries) => entries.push_json_text(key, text),
        };
        pushed.map_err(|fault| refuse(self.fault, fault))
    }

    fn null<E: Error>(self) -> Result<(), E> {
        Err(refuse(self.fault, ValueFault::NullItem))
    }

    fn list<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        let fault = ValueFault::WrongType { expected: "one value".to_owned(), got: "a list".to_owned() };
        Err(refuse(self.fault, fault))
    }

    fn object<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        let fault = ValueFault::WrongType { expected: "one value".to_owned(), got: "an object".to_owned() };
        Err(refuse(self.fault, fault))
    }
}

fn refuse<E: Error>(slot: &mut Option<ValueFault>, fault: ValueFault) -> E {
    *slot = Some(fault);
    E::custom("refused")
}
