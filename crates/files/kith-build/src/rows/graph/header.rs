//! Interprets the first line of a file: its delimiter, whether it is a header, and the places of the columns.

use super::{ColumnRef, ColumnSpec};
use crate::rows::options::HeaderMode;

/// A column that the caller needs.
pub(super) struct WantedColumn {
    /// Its name in messages.
    pub(super) label: String,
    /// The place that the user gives.
    pub(super) at: Option<ColumnRef>,
    /// The place otherwise: the column of this name or another usual one, else this place.
    pub(super) default: Option<(&'static str, usize)>,
    /// Whether it holds ids, which help to tell a header line from data.
    pub(super) is_id: bool,
    /// Whether a file may lack it. Only the last wanted column can be optional. If it is missing, it is not among the
    /// columns that are found.
    pub(super) is_optional: bool,
}

impl WantedColumn {
    pub(super) fn id(label: &'static str, at: Option<&ColumnRef>, position: usize) -> Self {
        WantedColumn {
            label: label.to_owned(),
            at: at.cloned(),
            default: Some((label, position)),
            is_id: true,
            is_optional: false,
        }
    }

    /// A text column that a file may lack.
    pub(super) fn optional(label: &'static str, position: usize) -> Self {
        WantedColumn { is_id: false, is_optional: true, ..WantedColumn::id(label, None, position) }
    }

    pub(super) fn kept(column: &ColumnSpec) -> Self {
        let name = || ColumnRef::Name(column.name.clone());
        let at = column.position.map_or_else(name, ColumnRef::Position);
        WantedColumn {
            label: column.name.clone(),
            at: Some(at),
            default: None,
            is_id: false,
            is_optional: false,
        }
    }
}

/// Why the wanted columns are not found.
pub(super) enum HeaderFault {
    /// A wanted column is missing.
    Missing {
        column: ColumnRef,
        /// The purpose of the column.
        role: String,
        /// The header line, or the places of the columns if there is none.
        header: Vec<String>,
    },
    /// Two columns have the name of a wanted one.
    Repeated { column: String },
    /// The header does not say which columns have these roles.
    Unknown { roles: Vec<String>, header: Vec<String> },
}

/// Whether the first line, with these fields, is a header.
pub(super) fn is_header(mode: HeaderMode, fields: &[Vec<u8>], wanted: &[WantedColumn]) -> bool {
    let by_name = || wanted.iter().any(|column| matches!(column.at, Some(ColumnRef::Name(_))));
    match mode {
        HeaderMode::Present => true,
        HeaderMode::Absent => false,
        HeaderMode::Detect => by_name() || looks_like_header(fields, wanted),
    }
}

fn looks_like_header(fields: &[Vec<u8>], wanted: &[WantedColumn]) -> bool {
    let ids = wanted.iter().filter(|column| column.is_id);
    let mut texts = ids.filter_map(|column| match column.at {
        Some(ColumnRef::Position(index)) => fields.get(index),
        _ => column.default.and_then(|(_, index)| fields.get(index)),
    });
    texts.all(|text| !looks_numeric(text)) || names_all(fields, wanted)
}

/// Whether a line holds the usual names of all ids and no number. The first name may then be empty, as pandas writes that of
/// its index.
fn names_all(fields: &[Vec<u8>], wanted: &[WantedColumn]) -> bool {
    let is_number = |field: &Vec<u8>| !field.trim_ascii().is_empty() && looks_numeric(field);
    let names: Vec<String> =
        fields.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect();
    let mut ids = wanted.iter().filter(|column| column.is_id);
    let is_named = |column: &WantedColumn| {
        let label = column.default.map(|(label, _)| label);
        label.is_some_and(|label| matches!(usual(&names, label, |_| false), Ok(Some(_))))
    };
    !fields.iter().any(is_number) && ids.all(is_named)
}

/// Whether a field of the first line looks like a value and not like a column's name.
fn looks_numeric(text: &[u8]) -> bool {
    text.trim_ascii().first().is_none_or(|first| first.is_ascii_digit() || matches!(first, b'-' | b'+'))
}

/// The place of each wanted column in a file with these column names (none without a header) and `width` columns. A `width`
/// of 0 means that the first line is not a record; then each line is checked for its columns.
pub(super) fn find_columns(
    wanted: &[WantedColumn],
    names: &[String],
    width: usize,
) -> Result<Vec<usize>, HeaderFault> {
    let by_default = default_places(wanted, names, width)?;
    let find = |(index, column): (usize, &WantedColumn)| {
        let at = column.at.clone().or(by_default[index].map(ColumnRef::Position));
        let Some(at) = at else { return Ok(None) };
        let found = match &at {
            ColumnRef::Name(name) => named(names, name)?,
            ColumnRef::Position(position) => {
                Some(*position).filter(|&position| position < width || width == 0)
            }
        };
        let indexes = || (1..=width).map(|position| position.to_string()).collect();
        let header = || if names.is_empty() { indexes() } else { names.to_vec() };
        match found {
            None if column.is_optional => Ok(None),
            None => Err(HeaderFault::Missing { column: at, role: column.label.clone(), header: header() }),
            found => Ok(found),
        }
    };
    wanted.iter().enumerate().filter_map(|column| find(column).transpose()).collect()
}

/// The place of the column with this name, which must not be the name of two columns.
fn named(names: &[String], name: &str) -> Result<Option<usize>, HeaderFault> {
    let mut found = names.iter().enumerate().filter(|(_, known)| *known == name).map(|(index, _)| index);
    match (found.next(), found.next()) {
        (_, Some(_)) => Err(HeaderFault::Repeated { column: name.to_owned() }),
        (index, None) => Ok(index),
    }
}

/// The most columns with unknown names that are taken by their order.
const UNKNOWN_MAX: usize = 2;

/// The places of the columns for which the user gives none. They are found by their usual names. A header without these
/// names says nothing about the order of its columns, so it is refused unless every column of the file is needed and at
/// most two of them have unknown names.
fn default_places(
    wanted: &[WantedColumn],
    names: &[String],
    width: usize,
) -> Result<Vec<Option<usize>>, HeaderFault> {
    let by_place = || wanted.iter().map(|column| column.default.map(|(_, index)| index)).collect();
    if names.is_empty() {
        return Ok(by_place());
    }
    let open: Vec<&WantedColumn> = wanted.iter().filter(|column| column.at.is_none()).collect();
    // A column that the user names for one role has no other.
    let taken = |index: usize| {
        wanted.iter().any(|column| match &column.at {
            Some(ColumnRef::Name(name)) => names[index] == *name,
            Some(ColumnRef::Position(at)) => *at == index,
            None => false,
        })
    };
    let mut found = Vec::with_capacity(wanted.len());
    for column in wanted {
        found.push(match column.default.filter(|_| column.at.is_none()) {
            Some((label, _)) => usual(names, label, taken)?,
            None => None,
        });
    }
    let needed = |column: &&WantedColumn| !column.is_optional;
    let is_known = wanted
        .iter()
        .zip(&found)
        .all(|(column, index)| column.at.is_some() || column.is_optional || index.is_some());
    if is_known {
        return Ok(found);
    }
    let left: Vec<usize> = (0..width).filter(|&index| !taken(index)).collect();
    let (least, most) = (open.iter().copied().filter(|column| needed(column)).count(), open.len());
    let unknown = || HeaderFault::Unknown {
        roles: open.iter().filter(|column| needed(column)).map(|column| column.label.clone()).collect(),
        header: names.to_vec(),
    };
    if left.len() < least {
        return Ok(by_place());
    }
    let unnamed = left.iter().filter(|&&index| !found.contains(&Some(index))).count();
    if most < left.len() || UNKNOWN_MAX < unnamed {
        return Err(unknown());
    }
    let mut rest = left.into_iter();
    let indexes: Vec<Option<usize>> =
        wanted.iter().map(|column| if column.at.is_none() { rest.next() } else { None }).collect();
    // A usual name in another place contradicts the order.
    let agrees = found.iter().zip(&indexes).all(|(found, index)| found.is_none() || found == index);
    if agrees { Ok(indexes) } else { Err(unknown()) }
}

/// The usual names of the columns, without regard to case, blanks and punctuation.
const USUAL: [(&str, &[&str]); 7] = [
    (
        "src",
        &[
            "src",
            "source",
            "from",
            "start",
            "startid",
            "srcid",
            "sourceid",
            "fromid",
            "fromnodeid",
            "follower",
            "followerid",
            "person1id",
            "personid1",
            "user1",
            "user1id",
            "userid1",
            "id1",
            "node1",
            "nodeid1",
            "member1",
            "memberid1",
            "outv",
        ],
    ),
    (
        "dst",
        &[
            "dst",
            "target",
            "to",
            "end",
            "endid",
            "dstid",
            "targetid",
            "toid",
            "tonodeid",
            "dest",
            "destination",
            "destinationid",
            "followee",
            "followeeid",
            "followed",
            "person2id",
            "personid2",
            "user2",
            "user2id",
            "userid2",
            "id2",
            "node2",
            "nodeid2",
            "member2",
            "memberid2",
            "inv",
        ],
    ),
    (
        "member",
        &["member", "memberid", "user", "userid", "person", "personid", "src", "source", "from", "startid"],
    ),
    ("kind", &["kind", "type", "label", "entitykind", "entitytype"]),
    ("entity", &["entity", "entityid", "dst", "target", "to", "endid"]),
    ("id", &["id", "memberid", "member", "userid", "user", "personid", "nodeid", "node"]),
    ("time", &["time", "timestamp", "createdat", "created", "creationdate", "since", "date", "ts"]),
];

/// The place of the column that is called `label`, or else of the one that has the first of its usual names that occurs.
/// That name must occur only once. Columns that are `taken` do not count.
fn usual(names: &[String], label: &str, taken: impl Fn(usize) -> bool) -> Result<Option<usize>, HeaderFault> {
    if let Some(index) = named(names, label)?.filter(|&index| !taken(index)) {
        return Ok(Some(index));
    }
    // The ends of associations are called as those of edges are.
    let end = match label {
        "id1" => "src",
        "id2" => "dst",
        other => other,
    };
    let known = USUAL.iter().find(|(known, _)| *known == end).map_or(&[] as &[&str], |(_, usual)| usual);
    for name in known {
        let mut found = (0..names.len()).filter(|&index| !taken(index) && plain(&names[index]) == *name);
        match (found.next(), found.next()) {
            (_, Some(second)) => return Err(HeaderFault::Repeated { column: names[second].clone() }),
            (Some(index), None) => return Ok(Some(index)),
            (None, _) => {}
        }
    }
    Ok(None)
}

/// A name without case, blanks and punctuation. Of the headers of Neo4j, such as `:START_ID(Person)` and `weight:int`, it is
/// the role if the column has one, else the name.
fn plain(name: &str) -> String {
    let name = name.split('(').next().unwrap_or_default();
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    match name.rsplit_once(':') {
        None => letters(name),
        Some((before, after)) => match letters(after) {
            role if before.is_empty() || matches!(role.as_str(), "startid" | "endid" | "id") => role,
            _ => letters(before),
        },
    }
}

/// The first of tab, comma, `;`, `|` and space that the first line contains outside quotes; comma if there is none, for a
/// single column. A space stands for any run of spaces and tabs.
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
    let has_both = bare.contains(&b'\t') && bare.contains(&b' ');
    let is_number = |byte: &u8| byte.is_ascii_digit() || b" \t.+-eE".contains(byte);
    if has_both && line.iter().all(is_number) {
        return b' ';
    }
    [b'\t', b',', b';', b'|', b' '].into_iter().find(|delimiter| bare.contains(delimiter)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(header: &str) -> Option<Vec<usize>> {
        let names: Vec<String> = header.split([',', '|']).map(str::to_owned).collect();
        find_columns(
            &[WantedColumn::id("src", None, 0), WantedColumn::id("dst", None, 1)],
            &names,
            names.len(),
        )
        .ok()
    }

    #[test]
    fn usual_names_are_known_in_any_order_and_case() {
        for (header, indexes) in [
            ("src,dst", [0, 1]),
            ("target,source", [1, 0]),
            ("to,from", [1, 0]),
            ("DST,SRC", [1, 0]),
            ("creationDate|Person1Id|Person2Id", [1, 2]),
            ("Id,Source,Target,Type", [1, 2]),
            (":START_ID(Body-ID),weight:int,:END_ID(Body-ID)", [0, 2]),
            (":END_ID,:START_ID,:TYPE", [1, 0]),
            ("followee,since,Follower", [2, 0]),
            ("~id,~from,~to,~label", [1, 2]),
            ("FromNodeId,ToNodeId", [0, 1]),
            ("a,b", [0, 1]),
            ("src,b", [0, 1]),
        ] {
            assert_eq!(edges(header), Some(indexes.to_vec()), "{header}");
        }
    }

    #[test]
    fn a_header_that_does_not_say_which_columns_are_meant_is_refused() {
        for header in ["a,b,c", "weight,x,y", "dst,x", "x,source", "src,src", "Person.id,Person.id,date"] {
            assert_eq!(edges(header), None, "{header}");
        }
    }

    #[test]
    fn a_column_that_the_user_names_has_no_other_role() {
        let to = ColumnRef::Name("to".to_owned());
        let first = ColumnRef::Position(0);
        for (header, src, dst, indexes) in [
            ("from,to", Some(&to), None, Some([1, 0])),
            ("from,to", None, Some(&first), Some([1, 0])),
            ("to,from", None, Some(&first), Some([1, 0])),
            ("from,to,weight", Some(&to), None, None),
            ("source,to,target", Some(&to), None, Some([1, 2])),
        ] {
            let names: Vec<String> = header.split(',').map(str::to_owned).collect();
            let wanted = [WantedColumn::id("src", src, 0), WantedColumn::id("dst", dst, 1)];
            let found = find_columns(&wanted, &names, names.len()).ok();
            assert_eq!(found, indexes.map(|indexes| indexes.to_vec()), "{header} {src:?} {dst:?}");
        }
    }

    #[test]
    fn runs_of_blanks_separate_numbers() {
        for (line, delimiter) in [
            (&b"1 2\t1 1212\n"[..], b' '),
            (b"1\t2\n", b'\t'),
            (b"1 2\n", b' '),
            (b"a b\tc\n", b'\t'),
            (b"1,2\n", b','),
        ] {
            assert_eq!(detect_delimiter(line), delimiter, "{line:?}");
        }
    }
}
