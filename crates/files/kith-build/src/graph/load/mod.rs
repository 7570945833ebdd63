//! Carries out a load command: reads files, and writes the component folders of an edge type, of entity kinds and of the
//! members under `<out>/<graph>/<component>/<version>/`.
//!
//! Nothing is committed to a cluster here. A load that fails leaves no component behind. One that is killed leaves finished
//! folders that no graph version names, and staging folders that the next load removes.

mod entities;
mod error;
mod options;
mod role;
#[cfg(test)]
mod tests;

use crate::progress::LoadProgress;
use crate::rows::ReadError;
use crate::rows::graph::{
    ColumnSpec, FileError, FileOptions, FileReport, ReadProgress, read_edges, read_members,
};
use kith_engine::Manifest;
use kith_files::{BuildError, BuildOptions, BuildSummary, ComponentBuilder, version_dir};
use kith_schema::{Column, KindRole};
use std::path::Path;

pub(crate) use error::LoadError;
pub(crate) use options::next_version;
pub use options::{LoadOptions, LoadReport, LoadedFile, MEMBERS_COMPONENT};
pub use role::FileRole;

/// Loads all files of `options`, one component after another, each with the whole memory budget.
///
/// # Errors
/// [`LoadError`] if a step fails. No component of this load remains then.
pub(crate) fn load_graph(
    options: &LoadOptions,
    progress: &mut dyn FnMut(LoadProgress<'_>),
) -> Result<LoadReport, LoadError> {
    options.check()?;
    let files = FileOptions { memory_bytes: options.memory_bytes, ..options.files.clone() };
    let mut load = Load { options, files: &files, progress, report: LoadReport::default() };
    let outcome = load.run();
    if outcome.is_err() {
        for (manifest, _) in &load.report.components {
            let dir = version_dir(&options.component_dir(&manifest.component), options.version);
            // The error that ended the load is the one to report.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
    outcome.map(|()| load.report)
}

struct Load<'a> {
    options: &'a LoadOptions,
    /// The options for reading all files.
    files: &'a FileOptions,
    progress: &'a mut dyn FnMut(LoadProgress<'_>),
    report: LoadReport,
}

impl Load<'_> {
    fn run(&mut self) -> Result<(), LoadError> {
        if !self.options.edges.is_empty() {
            self.edges()?;
        }
        if !self.options.entities.is_empty() {
            self.entities()?;
        }
        if !self.options.members.is_empty() {
            self.members()?;
        }
        Ok(())
    }

    fn edges(&mut self) -> Result<(), LoadError> {
        let (options, files) = (self.options, self.files);
        let role = if options.directed { KindRole::Directed } else { KindRole::Undirected };
        let columns = options.edge_columns.columns.iter().map(ColumnSpec::column).collect();
        let mut builder = self.builder(&options.edge_type, role, columns)?;
        for path in &options.edges {
            let mut self_loops = 0;
            let read =
                read_edges(path, files, &options.edge_columns, &mut self.reading(), |src, dst, values| {
                    options.stop.check()?;
                    self_loops += u64::from(src == dst);
                    builder.as_mut().map_or(Ok(()), |builder| builder.edge(src, dst, values))
                });
            self.loaded(FileRole::Edges, &options.edge_type, read, self_loops)?;
        }
        self.refuse_nothing(FileRole::Edges)?;
        self.finish(builder)
    }

    /// Refuses files of one role without any good line. A file that was truncated, has unexpected line ends, or is wrong in
    /// every line must not replace the existing data by nothing.
    fn refuse_nothing(&self, role: FileRole) -> Result<(), LoadError> {
        let files = || self.report.files.iter().filter(|file| file.role == role);
        if self.options.allow_empty || files().any(|file| 0 < file.good_rows()) {
            return Ok(());
        }
        Err(LoadError::NoRows {
            role,
            edge_type: self.options.edge_type.clone(),
            lines: files().map(|file| file.report.lines).sum(),
            wrong: files().map(|file| file.report.errors.total()).sum(),
        })
    }

    fn members(&mut self) -> Result<(), LoadError> {
        let (options, files) = (self.options, self.files);
        let mut builder = self.builder(MEMBERS_COMPONENT, KindRole::MembersOnly, Vec::new())?;
        for path in &options.members {
            let column = options.member_column.as_ref();
            let read = read_members(path, files, column, &mut self.reading(), |id| {
                options.stop.check()?;
                builder.as_mut().map_or(Ok(()), |builder| builder.member(id))
            });
            self.loaded(FileRole::Members, MEMBERS_COMPONENT, read, 0)?;
        }
        self.refuse_nothing(FileRole::Members)?;
        self.finish(builder)
    }

    /// Starts a component; `None` in a dry run.
    fn builder(
        &self,
        name: &str,
        role: KindRole,
        columns: Vec<Column>,
    ) -> Result<Option<ComponentBuilder>, LoadError> {
        let options = self.options;
        if options.dry_run {
            return Ok(None);
        }
        let built = ComponentBuilder::new(BuildOptions {
            graph: options.graph.clone(),
            name: name.to_owned(),
            version: options.version,
            role,
            partitions: options.partitions,
            columns,
            memory_bytes: options.memory_bytes,
            scratch_dir: options.scratch_dir(),
            out_dir: options.component_dir(name),
            threads: options.threads,
        });
        built.map(Some).map_err(|source| LoadError::Build { component: name.to_owned(), source })
    }

    fn finish(&mut self, builder: Option<ComponentBuilder>) -> Result<(), LoadError> {
        let Some(builder) = builder else { return Ok(()) };
        let component = builder.name().to_owned();
        let tell = &mut *self.progress;
        let built = builder.finish(&mut |progress| {
            tell(LoadProgress::Building { component: &component, progress });
        });
        let built: (Manifest, BuildSummary) =
            built.map_err(|source| LoadError::Build { component: component.clone(), source })?;
        self.report.components.push(built);
        Ok(())
    }

    fn reading(&mut self) -> impl FnMut(&ReadProgress) {
        |progress| (self.progress)(LoadProgress::Reading(progress))
    }

    fn loaded(
        &mut self,
        role: FileRole,
        component: &str,
        read: Result<FileReport, ReadError<BuildError, FileError>>,
        self_loops: u64,
    ) -> Result<(), LoadError> {
        let report = read.map_err(|error| match error {
            ReadError::Input(error) => LoadError::Input(error),
            ReadError::Caller(source) => LoadError::Build { component: component.to_owned(), source },
        })?;
        self.report.files.push(LoadedFile { role, report, self_loops });
        Ok(())
    }
}

/// The folder of a component of a graph.
fn component_dir(out_dir: &Path, graph: &str, component: &str) -> std::path::PathBuf {
    out_dir.join(graph).join(component)
}
