//! The failure domain of a node.

/// The failure domain of a node; labels that are not set are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The zone inside the region.
    pub zone: String,
    /// The rack inside the zone.
    pub rack: String,
    /// The region, such as a data centre.
    pub region: String,
}
