//! Interprets the first line of a file: its delimiter, whether it is a header, and the places of the columns.

use super::{ColumnRef, ColumnSpec};
use crate::options::HeaderMode;

/// A column that the caller needs.
pub(super) struct Wanted {
    /// Its name in messages.
    pub(super) label: String,
    /// The place that the user gives.
    pub(super) at: Option<ColumnRef>,
    /// The place otherwise: the column of this name if the header has *all* default names, else this place.
    pub(super) default: Option<(&'static str, usize)>,
    /// Whether it holds ids, which help to tell a header line from data.
    pub(super) is_id: bool,
    /// Whether a file may lack it. Only the last wanted column can be optional. If it is missing, it is not among the
    /// columns that are found.
    pub(super) is_optional: bool,
}

impl Wanted {
    pub(super) fn id(label: &'static str, at: Option<&ColumnRef>, position: usize) -> Self {
        Wanted {
            label: label.to_owned(),
            at: at.cloned(),
            default: Some((label, position)),
            is_id: true,
            is_optional: false,
        }
    }

    /// A text column that a file may lack.
    pub(super) fn optional(label: &'static str, position: usize) -> Self {
        Wanted { is_id: false, is_optional: true, ..Wanted::id(label, None, position) }
    }

    pub(super) fn kept(column: &ColumnSpec) -> Self {
        let name = || ColumnRef::Name(column.name.clone());
        let at = column.position.map_or_else(name, ColumnRef::Position);
        Wanted { label: column.name.clone(), at: Some(at), default: None, is_id: false, is_optional: false }
    }
}

/// A wanted column is missing.
pub(super) struct NoColumn {
    pub(super) column: ColumnRef,
    /// The purpose of the column.
    pub(super) role: String,
    /// The header line, or the places of the columns if there is none.
    pub(super) header: Vec<String>,
}

/// Whether the first line, with these fields, is a header.
pub(super) fn is_header(mode: HeaderMode, fields: &[Vec<u8>], wanted: &[Wanted]) -> bool {
    let by_name = || wanted.iter().any(|column| matches!(column.at, Some(ColumnRef::Name(_))));
    match mode {
        HeaderMode::Present => true,
        HeaderMode::Absent => false,
        HeaderMode::Detect => by_name() || looks_like_header(fields, wanted),
    }
}

fn looks_like_header(fields: &[Vec<u8>], wanted: &[Wanted]) -> bool {
    let ids = wanted.iter().filter(|column| column.is_id);
    let mut texts = ids.filter_map(|column| match column.at {
        Some(ColumnRef::Position(place)) => fields.get(place),
        _ => column.default.and_then(|(_, place)| fields.get(place)),
    });
    texts.all(|text| !looks_numeric(text))
}

/// Whether a field of the first line looks like a value and not like a column's name.
fn looks_numeric(text: &[u8]) -> bool {
    text.trim_ascii().first().is_none_or(|first| first.is_ascii_digit() || matches!(first, b'-' | b'+'))
}

/// The place of each wanted column in a file with these column names (none without a header) and `width` columns. A `width`
/// of 0 means that the first line is not a record; then each line is checked for its columns.
pub(super) fn find_columns(
    wanted: &[Wanted],
    names: &[String],
    width: usize,
) -> Result<Vec<usize>, NoColumn> {
    let find = |name: &str| names.iter().position(|known| known == name);
    let mut defaults = wanted.iter().filter(|column| column.at.is_none() && !column.is_optional);
    let all_named = defaults.all(|column| column.default.is_some_and(|(name, _)| find(name).is_some()));
    let place = |column: &Wanted| {
        let at = match (&column.at, column.default) {
            (Some(at), _) => at.clone(),
            (None, Some((name, _))) if all_named => ColumnRef::Name(name.to_owned()),
            (None, Some((_, place))) => ColumnRef::Position(place),
            (None, None) => unreachable!("a column without a default is asked for by name or place"),
        };
        let found = match &at {
            ColumnRef::Name(name) => find(name),
            ColumnRef::Position(place) => Some(*place).filter(|&place| place < width || width == 0),
        };
        let places = || (1..=width).map(|place| place.to_string()).collect();
        let header = || if names.is_empty() { places() } else { names.to_vec() };
        match found {
            None if column.is_optional => Ok(None),
            None => Err(NoColumn { column: at, role: column.label.clone(), header: header() }),
            found => Ok(found),
        }
    };
    wanted.iter().filter_map(|column| place(column).transpose()).collect()
}

/// The first of tab, comma, `;`, `|` and space that the first line contains outside quotes; comma if there is none, for a
/// single column.
pub(super) fn detect_delimiter(bytes: &[u8]) -> u8 {
    let text = bytes.trim_ascii_start();
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let mut is_quoted = false;
    let bare: Vec<u8> = line
        .iter()
        .copied()
        .filter(|&byte| {
            is_quoted ^= byte == b'"';
            !is_quoted
        })
        .collect();
    [b'\t', b',', b';', b'|', b' '].into_iter().find(|delimiter| bare.contains(delimiter)).unwrap_or(b',')
}
