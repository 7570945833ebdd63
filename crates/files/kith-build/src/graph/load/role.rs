//! What the files of a load hold.

/// The role of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Edges of the edge type.
    Edges,
    /// Member-to-entity edges.
    Entities,
    /// Members.
    Members,
}

impl FileRole {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FileRole::Edges => "edges",
            FileRole::Entities => "entities",
            FileRole::Members => "members",
        }
    }
}
