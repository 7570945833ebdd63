//! The names of fields and variants that a type declares to serde. Hints about unknown names use these, so that they always
//! match what the type accepts.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, VariantAccess,
    Visitor, value::Error,
};
use std::cell::Cell;

/// Returns the variants of an enum, or the fields of a struct.
pub fn names_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    asked::<T>(None)
}

/// Returns the fields of the struct in a variant of an enum; empty for an unknown variant.
#[cfg(feature = "flags")]
pub fn fields_of_variant<'de, T: Deserialize<'de>>(variant: &str) -> &'static [&'static str] {
    if names_of::<T>().contains(&variant) { asked::<T>(Some(variant)) } else { &[] }
}

fn asked<'de, T: Deserialize<'de>>(variant: Option<&str>) -> &'static [&'static str] {
    let found = Cell::new(&[][..]);
    // This is always an error: the probe ends deserialization as soon as it has seen the names.
    let _ = T::deserialize(Probe { variant, found: &found });
    found.get()
}

/// A deserializer without data. It only notes which names the type asks for.
struct Probe<'a> {
    /// The variant to enter, if the type is an enum.
    variant: Option<&'a str>,
    /// The names that the type asked for last.
    found: &'a Cell<&'static [&'static str]>,
}

fn stop<T>() -> Result<T, Error> {
    Err(Error::custom("a probe has no data"))
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        stop()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.found.set(fields);
        stop()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.found.set(variants);
        if self.variant.is_some() { visitor.visit_enum(self) } else { stop() }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Probe<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let name: serde::de::value::StrDeserializer<'_, Error> =
            self.variant.unwrap_or_default().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Probe<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        stop()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(Probe { variant: None, found: self.found })
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        stop()
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Error> {
        stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Shape {
        #[allow(dead_code)]
        RoundThing(Circle),
        #[serde(skip)]
        #[allow(dead_code)]
        Hidden(Circle),
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Circle {
        radius: u32,
        #[serde(rename = "fill")]
        colour: String,
    }

    #[test]
    fn names_are_those_that_are_read() {
        assert_eq!(names_of::<Shape>(), ["round-thing"]);
        assert_eq!(names_of::<Circle>(), ["radius", "fill"]);
        #[cfg(feature = "flags")]
        assert_eq!(fields_of_variant::<Shape>("round-thing"), ["radius", "fill"]);
        #[cfg(feature = "flags")]
        assert_eq!(fields_of_variant::<Shape>("square"), [""; 0]);
    }
}
