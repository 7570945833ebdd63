//! Builds a graph from rows of a program.

use super::{ColumnValue, FileRole, GraphOptions, LoadError, MEMBERS_COMPONENT};
use crate::rows::graph::{ColumnSpec, store_number, store_text};
use crate::{Failure, LoadProgress, OnProgress, Progress, failure::check_name};
use kith_engine::Manifest;
use kith_files::{BuildError, BuildOptions, BuildSummary, ComponentBuilder, version_dir};
use kith_schema::{ColumnNumber, KindRole};
use kith_types::{ErrorCode, check_component_name};
use std::fs;

/// Builds a graph from rows in any order, one component after another. A builder that is dropped without
/// [`GraphBuilder::finish`] leaves no component of its version behind.
///
/// The files are the same as those that `kith load graph` writes for the same rows in files.
///
/// ```
/// use kith_build::{GraphBuilder, GraphOptions};
/// use kith_schema::KindRole;
/// use kith_types::{PartitionCount, StoreVersion};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let partitions = PartitionCount::new(4).ok_or("four is a count")?;
/// let options = GraphOptions::new("village", StoreVersion(1), partitions, folder.path().to_owned());
/// let mut graph = GraphBuilder::new(options)?;
/// let mut edges = graph.component("connection", KindRole::Undirected, &[])?;
/// edges.edge(1, 2, &[])?;
/// edges.edge(2, 3, &[])?;
/// assert_eq!(edges.finish(&mut |_| {})?.edges, 2);
/// assert!(folder.path().join("village/connection/1").is_dir());
/// # graph.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct GraphBuilder {
    options: GraphOptions,
    built: Vec<(Manifest, BuildSummary)>,
    unlikely_time: Option<String>,
    is_finished: bool,
}

impl GraphBuilder {
    /// Begins a graph without components. Nothing is written yet.
    ///
    /// # Errors
    /// `invalid_name` if the name of the graph is invalid.
    pub fn new(options: GraphOptions) -> Result<Self, Failure> {
        check_name("graph", &options.graph)?;
        Ok(Self { options, built: Vec::new(), unlikely_time: None, is_finished: false })
    }

    /// Begins a component: an edge type (`Undirected`, `Directed`), an entity kind (`Entity`), or the list of members
    /// (`MembersOnly`, whose name is `members`). `columns` are kept beside each edge, at most eight; their positions are
    /// ignored.
    ///
    /// # Errors
    /// `invalid_name`; `name_taken`; `build_failed` if the version exists or folders cannot be created; `load_running`.
    pub fn component(
        &mut self,
        name: &str,
        role: KindRole,
        columns: &[ColumnSpec],
    ) -> Result<ComponentRows<'_>, Failure> {
        self.check_name(name, role)?;
        let options = &self.options;
        let graph_dir = options.out_dir.join(&options.graph);
        let builder = ComponentBuilder::new(BuildOptions {
            graph: options.graph.clone(),
            name: name.to_owned(),
            version: options.version,
            role,
            partitions: options.partitions,
            columns: columns.iter().map(ColumnSpec::column).collect(),
            memory_bytes: options.memory_bytes,
            out_dir: graph_dir.join(name),
            scratch_dir: graph_dir,
            threads: options.threads,
        });
        let builder = builder.map_err(failed(name))?;
        Ok(ComponentRows {
            graph: self,
            builder,
            role,
            columns: columns.to_vec(),
            stored: Vec::new(),
            rows: 0,
            good: 0,
        })
    }

    fn check_name(&self, name: &str, role: KindRole) -> Result<(), Failure> {
        let what = if role == KindRole::Entity { "an entity kind" } else { "an edge type" };
        if check_component_name(name).is_err() {
            return Err(LoadError::Name { what, name: name.to_owned() }.into());
        }
        let taken = |by| Err(LoadError::NameTaken { name: name.to_owned(), by }.into());
        match self.built.iter().find(|(manifest, _)| manifest.component == name) {
            _ if (name == MEMBERS_COMPONENT) != (role == KindRole::MembersOnly) => {
                taken("the list of members")
            }
            Some((manifest, _)) if manifest.graph().is_some_and(|it| it.role == KindRole::Entity) => {
                taken("an entity kind")
            }
            Some(_) if role == KindRole::MembersOnly => taken("the list of members"),
            Some(_) => taken("an edge type"),
            None => Ok(()),
        }
    }

    /// The first time of a row that is probably in another unit than its column says, with a proposal; for people.
    pub fn unlikely_time(&self) -> Option<&str> {
        self.unlikely_time.as_deref()
    }

    /// Returns the manifests of all components, and their counts.
    ///
    /// # Errors
    /// `nothing_to_load` if there is no component.
    pub fn finish(mut self) -> Result<Vec<(Manifest, BuildSummary)>, Failure> {
        if self.built.is_empty() {
            return Err(LoadError::Nothing.into());
        }
        self.is_finished = true;
        Ok(std::mem::take(&mut self.built))
    }
}

impl Drop for GraphBuilder {
    fn drop(&mut self) {
        let GraphOptions { out_dir, graph, version, .. } = &self.options;
        for (manifest, _) in self.built.iter().filter(|_| !self.is_finished) {
            // A version that cannot be removed does no harm, because no metadata name it.
            let _ = fs::remove_dir_all(version_dir(&out_dir.join(graph).join(&manifest.component), *version));
        }
    }
}

/// Takes the rows of one component. If it is dropped without [`ComponentRows::finish`], nothing remains.
pub struct ComponentRows<'g> {
    graph: &'g mut GraphBuilder,
    builder: ComponentBuilder,
    role: KindRole,
    columns: Vec<ColumnSpec>,
    /// The stored form of the current row's columns.
    stored: Vec<u64>,
    rows: u64,
    good: u64,
}

impl ComponentRows<'_> {
    /// Adds an edge with one value per column; for an entity kind, from a member to an entity. Of equal edges, the one with
    /// the greatest columns is kept. An edge from a member to itself is dropped and counted.
    ///
    /// # Errors
    /// `bad_lines` for a wrong number of columns, or for a value that is not of its column's kind; `build_failed` if the
    /// disk fails. The component cannot be continued then.
    pub fn edge(&mut self, src: u64, dst: u64, columns: &[ColumnValue<'_>]) -> Result<(), Failure> {
        self.rows += 1;
        if self.role == KindRole::MembersOnly {
            return Err(self.fault(self.rows, "a list of members has no edges"));
        }
        if columns.len() != self.columns.len() {
            let (expected, got) = (2 + self.columns.len(), 2 + columns.len());
            return Err(self.fault(self.rows, &format!("expected {expected} columns, got {got}")));
        }
        self.stored.clear();
        for (column, value) in self.columns.iter().zip(columns) {
            let is_number = match value {
                ColumnValue::Text(text) => text.trim().bytes().all(|byte| byte.is_ascii_digit()),
                _ => true,
            };
            let stored = match *value {
                ColumnValue::Unsigned(value) => store_number(column.kind, ColumnNumber::U64(value)),
                ColumnValue::Signed(value) => store_number(column.kind, ColumnNumber::I64(value)),
                ColumnValue::Float(value) => store_number(column.kind, ColumnNumber::F64(value)),
                ColumnValue::Text(text) => store_text(column.kind, text.trim()),
            };
            let doubt = &mut self.graph.unlikely_time;
            match stored.and_then(|it| if is_number { column.of_number(it, doubt) } else { Some(it) }) {
                Some(stored) => self.stored.push(stored),
                None => {
                    let why = format!("{} is not of kind {}", column.name, column.kind.name());
                    return Err(self.fault(self.rows, &why));
                }
            }
        }
        self.good += u64::from(src != dst || self.role == KindRole::Entity);
        self.builder.edge(src, dst, &self.stored).map_err(|error| failed(self.builder.name())(error))
    }

    /// Adds a member, with or without edges.
    ///
    /// # Errors
    /// `build_failed` if the disk fails.
    pub fn member(&mut self, id: u64) -> Result<(), Failure> {
        self.rows += 1;
        self.good += 1;
        self.builder.member(id).map_err(|error| failed(self.builder.name())(error))
    }

    /// Sorts, writes and syncs all files, and gives the component's folder its name. Returns the counts.
    ///
    /// # Errors
    /// `no_edges` (`no_entities`, `no_members`) if there is no good row and that is not allowed; `build_failed`. Nothing of
    /// the component remains then.
    pub fn finish(self, on_progress: &mut OnProgress<'_>) -> Result<BuildSummary, Failure> {
        let name = self.builder.name().to_owned();
        if self.good == 0 && !self.graph.options.allow_empty {
            let role = match self.role {
                KindRole::Undirected | KindRole::Directed => FileRole::Edges,
                KindRole::Entity => FileRole::Entities,
                KindRole::MembersOnly => FileRole::Members,
            };
            return Err(LoadError::NoRows { role, edge_type: name, lines: self.rows, wrong: 0 }.into());
        }
        let built = self.builder.finish(&mut |progress| {
            on_progress(Progress::Graph(LoadProgress::Building { component: &name, progress }));
        });
        let (manifest, summary) = built.map_err(failed(&name))?;
        self.graph.built.push((manifest, summary));
        Ok(summary)
    }

    /// The failure for the next row if the caller finds it wrong, in the same form as for rows that are found wrong here.
    pub fn wrong(&self, why: &str) -> Failure {
        self.fault(self.rows + 1, why)
    }

    fn fault(&self, row: u64, why: &str) -> Failure {
        let message = format!("{} row {row}: {why}", self.builder.name());
        Failure::new(ErrorCode::BadLines, message, "nothing was built; correct the row")
    }
}

fn failed(component: &str) -> impl FnOnce(BuildError) -> Failure {
    let component = component.to_owned();
    |source| LoadError::Build { component, source }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::{PartitionCount, StoreVersion};

    #[test]
    fn numbers_are_exact_and_times_in_their_unit() {
        let folder = tempfile::tempdir().unwrap();
        let options = |graph: &str| {
            let partitions = PartitionCount::new(2).unwrap();
            GraphOptions::new(graph, StoreVersion(1), partitions, folder.path().to_owned())
        };
        let spec = |text: &str| text.parse::<ColumnSpec>().unwrap();
        let hash = |graph: &str, column: &str, value: ColumnValue<'_>| {
            let mut builder = GraphBuilder::new(options(graph)).unwrap();
            let mut edges = builder.component("knows", KindRole::Directed, &[spec(column)]).unwrap();
            edges.edge(1, 2, &[value])?;
            edges.finish(&mut |_| {}).unwrap();
            let doubt = builder.unlikely_time().map(str::to_owned);
            let built = builder.finish().unwrap();
            Ok::<_, Failure>((built[0].0.files.clone(), doubt))
        };
        let millis = hash("a", "at:time", ColumnValue::Unsigned(1_700_000_000_000)).unwrap();
        assert_eq!(hash("b", "at:time-s", ColumnValue::Unsigned(1_700_000_000)).unwrap(), millis);
        assert_eq!(hash("c", "at:time-us", ColumnValue::Text("1700000000000000")).unwrap(), millis);
        assert_eq!(hash("d", "at:time-s", ColumnValue::Text("2023-11-14T22:13:20Z")).unwrap(), millis);
        let (files, doubt) = hash("e", "at:time", ColumnValue::Unsigned(1_700_000_000)).unwrap();
        assert!(files != millis.0 && doubt.unwrap().contains("at:time-s"));
        for rounded in [ColumnValue::Unsigned((1 << 53) + 1), ColumnValue::Signed(-(1 << 53) - 1)] {
            let refused = hash("f", "w:f64", rounded).unwrap_err();
            assert_eq!(refused.code, ErrorCode::BadLines);
        }
        assert!(hash("g", "w:f64", ColumnValue::Unsigned(1 << 53)).is_ok());
    }
}
