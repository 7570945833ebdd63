//! The files of a component and their names, such as `p00012.both.data`.
//!
//! A partition is the unit that a node pulls (Voldemort §5.2, with one copy for all replicas). So each of these *logical*
//! files belongs to exactly one partition, except the dictionary, which every node needs. On disk they lie in packs
//! (`pack`).

use kith_schema::KindRole;
use kith_types::{Direction, PartitionId};
use std::fmt;

/// The name of the manifest in a component's folder.
pub const MANIFEST_NAME: &str = "manifest.json";

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// The records of a chunk set.
    Data,
    /// The index of a chunk set.
    Index,
    /// The inverted index of one list.
    Postings,
    /// The ids of the members of the partition.
    Members,
    /// The compression dictionary for the values of the whole version.
    Dictionary,
}

/// The partition of files that belong to no partition. Every node holds them.
pub const NO_PARTITION: PartitionId = PartitionId(u32::MAX);

/// The identity of a file. Its name and its header both encode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The partition that it belongs to; 2^32 − 1 for the dictionary, which belongs to none.
    pub partition: PartitionId,
    /// The list that it belongs to; `None` for the member table and for key-value data.
    pub list: Option<Direction>,
    /// The kind of its content.
    pub kind: FileKind,
    /// The number of the chunk set within partition and list; 0 for other kinds.
    pub set: u32,
}

impl FileKind {
    const ALL: [FileKind; 4] = [FileKind::Data, FileKind::Index, FileKind::Postings, FileKind::Members];

    /// Whether lookups read it before data. Such files are loaded into memory first and fetched last.
    pub fn is_index(self) -> bool {
        self != FileKind::Data
    }

    /// The last part of the file's name.
    pub fn extension(self) -> &'static str {
        match self {
            FileKind::Data => "data",
            FileKind::Index => "index",
            FileKind::Postings => "postings",
            FileKind::Members => "members",
            FileKind::Dictionary => "dictionary",
        }
    }
}

/// The lists that a component of this role keeps for each partition, each with its own postings.
pub fn lists_of(role: KindRole) -> &'static [Direction] {
    match role {
        KindRole::Undirected => &[Direction::Both],
        KindRole::Directed | KindRole::Entity => &[Direction::Out, Direction::In],
        KindRole::MembersOnly => &[],
    }
}

/// The name of a list inside file names.
pub fn list_name(list: Direction) -> &'static str {
    match list {
        Direction::Both => "both",
        Direction::Out => "out",
        Direction::In => "in",
    }
}

impl FileId {
    /// The member table of a partition.
    pub fn members(partition: PartitionId) -> Self {
        Self { partition, list: None, kind: FileKind::Members, set: 0 }
    }

    /// The postings over one list of a partition.
    pub fn postings(partition: PartitionId, list: Direction) -> Self {
        Self { partition, list: Some(list), kind: FileKind::Postings, set: 0 }
    }

    /// The compression dictionary of a version.
    pub fn dictionary() -> Self {
        Self { partition: NO_PARTITION, list: None, kind: FileKind::Dictionary, set: 0 }
    }

    /// Parses a file name; `None` if it is not the name of a component's file.
    pub fn parse(name: &str) -> Option<Self> {
        if name == FileKind::Dictionary.extension() {
            return Some(Self::dictionary());
        }
        let mut parts = name.split('.');
        let partition = PartitionId(parts.next()?.strip_prefix('p')?.parse().ok()?);
        let mut id = Self { partition, list: None, kind: FileKind::Members, set: 0 };
        for part in parts {
            if let Some(list) = [Direction::Both, Direction::Out, Direction::In]
                .into_iter()
                .find(|&list| list_name(list) == part)
            {
                id.list = Some(list);
            } else if let Some(kind) = FileKind::ALL.into_iter().find(|kind| kind.extension() == part) {
                id.kind = kind;
            } else {
                id.set = part.strip_prefix('s')?.parse().ok()?;
            }
        }
        // Each name has one spelling: a name that would be written differently belongs to no file of a component.
        (id.to_string() == name).then_some(id)
    }
}

/// The file's name.
impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == FileKind::Dictionary {
            return f.write_str(self.kind.extension());
        }
        write!(f, "p{:05}", self.partition.0)?;
        if let Some(list) = self.list {
            write!(f, ".{}", list_name(list))?;
        }
        if self.set > 0 {
            write!(f, ".s{:03}", self.set)?;
        }
        write!(f, ".{}", self.kind.extension())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_identities_are_one_to_one() {
        let partition = PartitionId(12);
        let both = |kind, set| FileId { partition, list: Some(Direction::Both), kind, set };
        for (id, name) in [
            (FileId::members(partition), "p00012.members"),
            (both(FileKind::Data, 0), "p00012.both.data"),
            (both(FileKind::Index, 3), "p00012.both.s003.index"),
            (FileId::postings(PartitionId(65_535), Direction::In), "p65535.in.postings"),
            (FileId { partition, list: None, kind: FileKind::Data, set: 0 }, "p00012.data"),
            (FileId::dictionary(), "dictionary"),
        ] {
            assert_eq!(id.to_string(), name);
            assert_eq!(FileId::parse(name), Some(id));
        }
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            "p1.members",
            "p00012",
            "p00012.both.both.data",
            "p00012.s000.data",
            "manifest.json",
            "p00012.dictionary",
            "p00012.data~",
        ] {
            assert_eq!(FileId::parse(name), None, "{name}");
        }
    }
}
