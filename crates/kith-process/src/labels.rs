//! Where a node is.

/// Where a node is: failure domains, empty where unlabelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Inside the region.
    pub zone: String,
    /// Inside the zone.
    pub rack: String,
    /// Data centre.
    pub region: String,
}
