//! Loads files of member-to-entity edges into one component per kind.
//!
//! The kinds are known only after the files were read. So the edges of each kind are written to a scratch file first, and
//! the components are then built one after another with the whole memory budget.

use super::{FileRole, Load, LoadError, LoadOptions, MEMBERS_COMPONENT};
use crate::rows::ReadError;
use crate::rows::graph::{ColumnSpec, read_entities};
use kith_files::{BuildError, SortOptions, Spool};
use kith_schema::{Column, KindRole};
use std::collections::BTreeMap;
use std::path::Path;

/// The most kinds in one load. Each has an open scratch file and a buffer. A file with more kinds probably has its columns
/// mixed up.
const KINDS_MAX: usize = 256;

type Spools = BTreeMap<String, Option<Spool>>;

impl Load<'_> {
    pub(super) fn entities(&mut self) -> Result<(), LoadError> {
        let mut spools = Spools::new();
        for path in &self.options.entities {
            self.put_aside(path, &mut spools)?;
        }
        self.refuse_nothing(FileRole::Entities)?;
        for (kind, spool) in spools {
            if let Some(spool) = spool {
                self.build_kind(&kind, spool)?;
            }
        }
        Ok(())
    }

    fn put_aside(&mut self, path: &Path, spools: &mut Spools) -> Result<(), LoadError> {
        let options = self.options;
        let columns = &options.entity_columns;
        let scratch = SortOptions {
            memory_bytes: options.memory_bytes / KINDS_MAX * 8,
            scratch_dir: options.scratch_dir(),
            threads: 1,
        };
        if !options.dry_run {
            let created = std::fs::create_dir_all(&scratch.scratch_dir);
            created.map_err(|source| {
                let path = scratch.scratch_dir.clone();
                build_error("entities")(BuildError::Folder { action: "create", path, source })
            })?;
        }
        let read =
            read_entities(path, self.files, columns, &mut self.reading(), |member, kind, entity, values| {
                options.stop.check().map_err(build_error(kind))?;
                if !spools.contains_key(kind) {
                    check_kind(kind, options)?;
                    if spools.len() == KINDS_MAX {
                        return Err(LoadError::TooManyKinds { path: path.to_owned(), max: KINDS_MAX });
                    }
                    let spool = if options.dry_run { None } else { Some(new_spool(&scratch, kind)?) };
                    spools.insert(kind.to_owned(), spool);
                }
                let Some(Some(spool)) = spools.get_mut(kind) else { return Ok(()) };
                let mut words = [member, entity].into_iter().chain(values.iter().copied());
                words.try_for_each(|word| spool.push(word)).map_err(|error| build_error(kind)(error.into()))
            });
        let read = match read {
            Err(ReadError::Caller(error)) => return Err(error),
            Err(ReadError::Input(error)) => Err(ReadError::Input(error)),
            Ok(report) => Ok(report),
        };
        self.loaded(FileRole::Entities, "entities", read, 0)
    }

    fn build_kind(&mut self, kind: &str, spool: Spool) -> Result<(), LoadError> {
        let columns: Vec<Column> = self.options.entity_columns.iter().map(ColumnSpec::column).collect();
        let mut words = vec![0; 2 + columns.len()];
        let mut builder = self.builder(kind, KindRole::Entity, columns)?;
        let fill = || -> Result<(), BuildError> {
            let mut edges = spool.finish()?;
            while edges.read(&mut words)? {
                if let Some(builder) = &mut builder {
                    builder.edge(words[0], words[1], &words[2..])?;
                }
            }
            Ok(())
        };
        fill().map_err(build_error(kind))?;
        self.finish(builder)
    }
}

fn check_kind(kind: &str, options: &LoadOptions) -> Result<(), LoadError> {
    let by = match kind {
        MEMBERS_COMPONENT => "the list of members",
        _ if kind == options.edge_type && !options.edges.is_empty() => "an edge type",
        _ => return Ok(()),
    };
    Err(LoadError::NameTaken { name: kind.to_owned(), by })
}

fn new_spool(options: &SortOptions, kind: &str) -> Result<Spool, LoadError> {
    Spool::create(options).map_err(|error| build_error(kind)(error.into()))
}

fn build_error(component: &str) -> impl FnOnce(BuildError) -> LoadError {
    let component = component.to_owned();
    |source| LoadError::Build { component, source }
}
