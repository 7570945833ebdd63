//! Determines the kinds of a JSON object's members, without keeping their values.

use super::JsonFault;
use super::guess::{Guess, Kind, Numbers, join};
use kith_schema::ScalarType;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The members in the order of the text; `None` stands for null.
pub(super) fn members(object: &str) -> Result<Vec<(String, Option<Guess>)>, JsonFault> {
    serde_json::from_str::<Members>(object).map(|members| members.0).map_err(|error| {
        let detail = error.to_string();
        let detail = detail.split(" at line ").next().unwrap_or_default().to_owned();
        JsonFault { detail, column: error.column() }
    })
}

struct Members(Vec<(String, Option<Guess>)>);

struct Sight(Option<Guess>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, Sight(guess))) = map.next_entry()? {
                    members.push((name, guess));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

impl<'de> Deserialize<'de> for Sight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SightVisitor)
    }
}

struct SightVisitor;

fn one(kind: Kind) -> Sight {
    Sight(Some(Guess::One(kind)))
}

/// Adds the type of one more item of a list or map to `items`.
fn join_item<E: Error>(items: &mut Option<Kind>, item: Sight) -> Result<(), E> {
    let Sight(Some(Guess::One(kind))) = item else {
        return Err(E::custom("a list or map inside a record holds one kind of plain values, no nulls"));
    };
    let first = items.map_or(Guess::Unknown, Guess::One);
    match join(first.clone(), Guess::One(kind)) {
        Some(Guess::One(kind)) => *items = Some(kind),
        _ => return Err(E::custom(format!("a list or map inside a record holds both {first} and {kind}"))),
    }
    Ok(())
}

impl<'de> Visitor<'de> for SightVisitor {
    type Value = Sight;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Sight, E> {
        Ok(Sight(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Sight, E> {
        Ok(one(Kind::Of(ScalarType::Bool)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Sight, E> {
        Ok(one(Kind::Number(Numbers::whole(value < 0, value.unsigned_abs()))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Sight, E> {
        Ok(one(Kind::Number(Numbers::whole(false, value))))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Sight, E> {
        Ok(one(Kind::Number(Numbers::floating())))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Sight, E> {
        Ok(one(Kind::Of(ScalarType::Text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Sight, A::Error> {
        let mut items = None;
        while let Some(item) = seq.next_element::<Sight>()? {
            join_item(&mut items, item)?;
        }
        Ok(Sight(Some(Guess::List(items))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sight, A::Error> {
        let mut values = None;
        while let Some((_, value)) = map.next_entry::<String, Sight>()? {
            join_item(&mut values, value)?;
        }
        Ok(Sight(Some(Guess::Map(values))))
    }
}
