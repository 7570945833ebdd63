//! A serializer that writes ids as texts.

use kith_query::ids::Id;
use serde::{
    Serialize, Serializer,
    ser::{
        Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};

/// Writes ids as texts, and everything else as `S` does.
pub(super) struct TextIds<S>(pub S);

/// A value whose ids are written as texts.
struct Within<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Serialize for Within<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(TextIds(serializer))
    }
}

/// The methods that write the same as those of the serializer within.
macro_rules! unchanged {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method(self, $($argument: $type),*) -> Result<S::Ok, S::Error> {
            self.0.$method($($argument),*)
        })*
    };
}

/// The methods that begin something with elements.
macro_rules! begun {
    ($($method:ident($($argument:ident: $type:ty),*) -> $begun:ident;)*) => {
        $(fn $method(self, $($argument: $type),*) -> Result<TextIds<S::$begun>, S::Error> {
            self.0.$method($($argument),*).map(TextIds)
        })*
    };
}

impl<S: Serializer> Serializer for TextIds<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = TextIds<S::SerializeSeq>;
    type SerializeTuple = TextIds<S::SerializeTuple>;
    type SerializeTupleStruct = TextIds<S::SerializeTupleStruct>;
    type SerializeTupleVariant = TextIds<S::SerializeTupleVariant>;
    type SerializeMap = TextIds<S::SerializeMap>;
    type SerializeStruct = TextIds<S::SerializeStruct>;
    type SerializeStructVariant = TextIds<S::SerializeStructVariant>;

    unchanged! {
        serialize_bool(value: bool);
        serialize_i8(value: i8);
        serialize_i16(value: i16);
        serialize_i32(value: i32);
        serialize_i64(value: i64);
        serialize_i128(value: i128);
        serialize_u8(value: u8);
        serialize_u16(value: u16);
        serialize_u32(value: u32);
        serialize_u64(value: u64);
        serialize_u128(value: u128);
        serialize_f32(value: f32);
        serialize_f64(value: f64);
        serialize_char(value: char);
        serialize_str(value: &str);
        serialize_bytes(value: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    begun! {
        serialize_seq(length: Option<usize>) -> SerializeSeq;
        serialize_tuple(length: usize) -> SerializeTuple;
        serialize_tuple_struct(name: &'static str, length: usize) -> SerializeTupleStruct;
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, length: usize) -> SerializeTupleVariant;
        serialize_map(length: Option<usize>) -> SerializeMap;
        serialize_struct(name: &'static str, length: usize) -> SerializeStruct;
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, length: usize) -> SerializeStructVariant;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Within(value))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        if name != Id::NAME {
            return self.0.serialize_newtype_struct(name, &Within(value));
        }
        let digits = serde_json::to_string(value).map_err(S::Error::custom)?;
        self.0.serialize_str(&digits)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_variant(name, index, variant, &Within(value))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// The elements of lists and tuples.
macro_rules! elements {
    ($($trait:ident::$method:ident;)*) => {
        $(impl<S: $trait> $trait for TextIds<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$method(&Within(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

elements! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

/// The fields of structs.
macro_rules! fields {
    ($($trait:ident;)*) => {
        $(impl<S: $trait> $trait for TextIds<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), S::Error> {
                self.0.serialize_field(name, &Within(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

fields! {
    SerializeStruct;
    SerializeStructVariant;
}

impl<S: SerializeMap> SerializeMap for TextIds<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Within(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}
