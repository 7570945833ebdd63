//! Reads the lines of a file as rows of fields.

use super::lines::Lines;
use super::raw::{Name, string};
use crate::rows::error::RowsError;
use crate::rows::fault::RowFault;
use crate::rows::field::{EachRow, Field};
use crate::rows::unpack::{UnpackedSource, unmarked};
use crate::rows::value::json_fault;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

/// The lines of a file, read as rows of fields.
pub(crate) struct FieldLines {
    names: Vec<String>,
    lines: Lines<Box<dyn BufRead + Send>>,
}

impl FieldLines {
    /// Opens the lines. The names are the members of the lines in the first bytes of the file.
    pub(crate) fn new(unpacked: UnpackedSource) -> Self {
        let mut names: Vec<String> = Vec::new();
        let head = unmarked(&unpacked.head);
        // The last line of the head may be cut off; other lines have the members that it lacks.
        for line in head.split(|byte| *byte == b'\n') {
            let Some(object) = std::str::from_utf8(line).ok().and_then(object) else { continue };
            for (name, _) in object.0 {
                if !names.iter().any(|known| *known == name) {
                    names.push(name.into_owned());
                }
            }
        }
        let (errors, bytes) = unpacked.into_text();
        FieldLines { names, lines: Lines::new(Box::new(bytes), errors) }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Implements [`crate::rows::FieldTable::rows`].
    pub(crate) fn rows(mut self, names: &[&str], each: &mut EachRow<'_>) -> Result<(), RowsError> {
        while self.lines.advance()? {
            let number = self.lines.number;
            let fields = self.lines.text().and_then(|line| fields(line, names));
            if !each(number, fields.as_deref().map_err(Clone::clone)) {
                break;
            }
        }
        Ok(())
    }
}

/// The members with these names, in the order of the names.
fn fields<'a>(line: &'a str, names: &[&str]) -> Result<Vec<Field<'a>>, RowFault> {
    let object: Object<'a> = serde_json::from_str(line).map_err(|error| json_fault(&error))?;
    let field = |name: &&str| {
        let mut members = object.0.iter().filter(|(known, _)| known == name);
        let member = members.next();
        match members.next() {
            Some(_) => Err(RowFault::Repeated { name: (*name).to_owned() }),
            None => member.map_or(Ok(Field::Null), |(_, value)| field_of(value.get())),
        }
    };
    names.iter().map(field).collect()
}

fn field_of(raw: &str) -> Result<Field<'_>, RowFault> {
    Ok(match raw.as_bytes().first() {
        Some(b'n') => Field::Null,
        Some(b'"') => Field::Text(string(raw)?),
        Some(b'0'..=b'9') => raw.parse().map_or(Field::Text(raw.into()), Field::Unsigned),
        _ => Field::Text(raw.into()),
    })
}

/// All members of an object, in their order.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

fn object(line: &str) -> Option<Object<'_>> {
    serde_json::from_str(line).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Members).map(Object)
    }
}
