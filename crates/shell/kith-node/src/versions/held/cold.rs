//! Whether an open version is completely in memory.

use super::VersionReader;
use kith_engine::{MappedPacks, Residency};

/// The number of pages of each version that are checked each time. This takes about 0.2 ms of system calls.
const PAGES: u32 = 512;

impl VersionReader {
    fn mapped(&self) -> Vec<&MappedPacks> {
        match self {
            VersionReader::Graph(reader) => {
                reader.components().iter().map(|component| component.mapped()).collect()
            }
            VersionReader::Values(reader) => vec![reader.mapped()],
        }
    }

    /// Whether its pages may have to be read from disk.
    pub fn is_cold(&self) -> bool {
        match self {
            VersionReader::Graph(reader) => reader.components().iter().any(|it| it.mapped().is_cold()),
            VersionReader::Values(reader) => reader.mapped().is_cold(),
        }
    }

    /// How much of it is in memory, by a sample of its pages.
    pub fn residency(&self) -> Residency {
        let looked = self.mapped().into_iter().map(|mapped| mapped.residency(PAGES, rand::random()));
        looked.fold(Residency::default(), |sum, looked| sum + looked)
    }

    /// Sets whether its pages may have to be read from disk.
    pub fn set_cold(&self, is_cold: bool) {
        self.mapped().into_iter().for_each(|mapped| mapped.set_cold(is_cold));
    }

    /// Checks the version before it is first read.
    pub(super) fn look_first(&self) {
        self.set_cold(!self.residency().is_whole());
    }
}
