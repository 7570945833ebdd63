//! The formats of files of rows.

use kith_schema::nearest;
use std::fmt;
use std::str::FromStr;
use strum::IntoStaticStr;
use thiserror::Error;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Format {
    /// Comma- or tab-separated text, quoted as in RFC 4180.
    Csv,
    /// One JSON object per line.
    Json,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, either a file with a footer or a stream without one.
    Arrow,
    /// Vectors of `f32`, little-endian, end to end.
    F32le,
}

impl Format {
    /// All formats, in the order in which help lists them.
    pub const ALL: [Format; 5] = [Format::Csv, Format::Json, Format::Parquet, Format::Arrow, Format::F32le];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The format name is unknown.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("format {text:?} is unknown (csv, json, parquet, arrow or f32le){}", near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
pub struct UnknownFormat {
    /// The name as written.
    pub text: String,
    /// The nearest known name, if one is near.
    pub near: Option<String>,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| UnknownFormat {
            text: text.to_owned(),
            near: nearest(text, Format::ALL.map(Format::name)),
        })
    }
}
