//! The rows of a file, checked against the types of the graph before anything is written.

use super::flags::{ImportFlags, Target};
use kith_build::rows::{
    ReadError,
    graph::{
        AssociationRow, FileError, FileReport, LineFault, ObjectRow, ReadProgress, read_associations,
        read_objects,
    },
};
use kith_live::{GraphTypes, TypeId, TypeKind, UnknownType};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// An object or association to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    Object(ObjectRow),
    Association(AssociationRow),
}

impl Row {
    /// The number of its line in the file.
    pub fn number(&self) -> u64 {
        match self {
            Row::Object(object) => object.number,
            Row::Association(association) => association.number,
        }
    }

    /// Rows with the same key must be written in their order. Both directions of a two-sided association have the same key.
    pub fn key(&self) -> (u64, u64) {
        match self {
            Row::Object(object) => (object.id, object.id),
            Row::Association(AssociationRow { id1, id2, .. }) => (*id1.min(id2), *id1.max(id2)),
        }
    }

    /// Adds all fields of the row to a checksum.
    pub fn hash_into(&self, hash: &mut Sha256) {
        let (numbers, data) = match self {
            Row::Object(ObjectRow { number, id, data }) => ([*number, *id, 0, 0], data),
            Row::Association(AssociationRow { number, id1, id2, time, data }) => {
                ([*number, *id1, *id2, *time], data)
            }
        };
        numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
        let data = data.as_deref().unwrap_or_default();
        hash.update((data.len() as u64).to_le_bytes());
        hash.update(data.as_bytes());
    }
}

/// A file whose rows all have one type.
#[derive(Clone, Debug)]
pub struct Rows {
    flags: ImportFlags,
    types: Arc<GraphTypes>,
    kind: TypeId,
}

/// The result of a check of the whole file.
#[derive(Clone, Debug)]
pub struct FileCheck {
    pub report: FileReport,
    /// The number of rows that can be written.
    pub rows: u64,
    /// The checksum of those rows.
    pub checksum: String,
}

/// The reason why reading ended early.
pub enum ReadEnd {
    /// The file cannot be read, or has too many invalid lines.
    File(FileError),
    /// The caller wants no more rows.
    Stopped,
}

impl Rows {
    /// Returns the rows of the file that the flags name.
    ///
    /// # Errors
    /// [`UnknownType`] if the graph lacks the type, and the import does not add it.
    pub fn new(flags: &ImportFlags, types: &Arc<GraphTypes>) -> Result<Self, UnknownType> {
        let kind = match flags.target() {
            Target::Objects => TypeKind::Object,
            Target::Associations => TypeKind::Association,
        };
        let types = types.on_first_use(kind, &flags.kind);
        Ok(Self { flags: flags.clone(), kind: types.number_of(kind, &flags.kind)?, types })
    }

    /// Reads and checks the whole file.
    ///
    /// # Errors
    /// If the file cannot be read, or has more invalid lines than allowed.
    pub fn check(&self, progress: &mut dyn FnMut(&ReadProgress)) -> Result<FileCheck, FileError> {
        let (mut rows, mut hash) = (0, Sha256::new());
        let read = self.read(progress, |row| {
            rows += 1;
            row.hash_into(&mut hash);
            true
        });
        match read {
            Ok(report) => Ok(FileCheck { report, rows, checksum: hex(&hash.finalize()) }),
            Err(ReadEnd::File(error)) => Err(error),
            Err(ReadEnd::Stopped) => unreachable!("every row is wanted"),
        }
    }

    /// Calls `each` for every row whose fields fit the type, until it returns `false`.
    ///
    /// # Errors
    /// [`ReadEnd`], with the reason.
    pub fn read(
        &self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(Row) -> bool,
    ) -> Result<FileReport, ReadEnd> {
        let (path, options, columns) = (self.flags.file(), self.flags.files(), self.flags.columns());
        let unit = self.flags.time_unit();
        let mut doubt = None;
        let mut fits = |data: &Option<String>| match self.types.encode(self.kind, data.as_deref()) {
            Ok(_) => {
                if doubt.is_none() {
                    doubt = data.as_deref().and_then(|data| self.types.unlikely_time(self.kind, data));
                }
                Ok(())
            }
            Err(fault) => Err(LineFault::Fields(fault.to_string())),
        };
        let mut hand = |fits: Result<(), LineFault>, row: Row| match fits {
            Ok(()) if !each(row) => Err(()),
            fits => Ok(fits),
        };
        let read = match self.flags.target() {
            Target::Objects => read_objects(path, &options, &columns, progress, |object| {
                hand(fits(&object.data), Row::Object(object))
            }),
            Target::Associations => {
                read_associations(path, &options, &columns, unit, progress, |association| {
                    hand(fits(&association.data), Row::Association(association))
                })
            }
        };
        let mut report = read.map_err(|error| match error {
            ReadError::Input(error) => ReadEnd::File(error),
            ReadError::Caller(()) => ReadEnd::Stopped,
        })?;
        report.unlikely_time = report.unlikely_time.or(doubt);
        Ok(report)
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
