//! Builds graphs.

use super::{
    Given, check_rows, dropped, interruptible, open_objects, raised,
    rows::{BATCH_ROWS, Cell, parts},
};
use kith_build::{
    BuildSummary, ColumnRef, ColumnSpec, ComponentRows, DroppedRows, EdgeColumns, Failure, GraphBuilder,
    GraphOptions, HeaderMode, LoadOptions, LoadReport, LoadedFile, Manifest, Objects, Stop, Workshop,
    load_graph, next_graph_version, publish_graph,
};
use kith_schema::KindRole;
use kith_topology::{role_by_name, role_name};
use kith_types::StoreVersion;
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use std::path::PathBuf;

/// Name, role, members, edges, entities, self-loops, duplicates, edges in both orders, bytes and the hash of the manifest.
type Component = (String, &'static str, u64, u64, u64, u64, u64, u64, u64, String);
/// Path, role, rows and the columns that were read.
type ReadFile = (PathBuf, &'static str, u64, Vec<(String, String)>);
/// Version, components, dropped lines, the files that were read, and warnings.
type BuiltGraph = (u64, Vec<Component>, Vec<(String, u64, Vec<String>)>, Vec<ReadFile>, Vec<String>);
/// Name, role, columns and rows of a component.
type GivenRows<'py> = (String, String, Vec<String>, Bound<'py, PyAny>);

/// Builds the components of a graph into `out`, from the rows of `components` if they are given, and otherwise from the
/// files that `given` names.
#[pyfunction]
#[pyo3(signature = (graph, out, given, components))]
pub fn build_graph(
    py: Python<'_>,
    graph: &str,
    out: &str,
    given: &Bound<'_, PyDict>,
    components: Option<Vec<GivenRows<'_>>>,
) -> PyResult<BuiltGraph> {
    let given = Given(given);
    let to = open_objects(out)?;
    let (version, partitions) = (given.version()?, given.partitions()?);
    let begin = || {
        let version = version.map_or_else(|| next_graph_version(&to, graph), Ok)?;
        Ok((version, Workshop::of(&to)?))
    };
    let (version, workshop) = py.detach(begin).map_err(raised)?;
    let mut options = GraphOptions::new(graph, version, partitions, workshop.folder().to_owned());
    options.allow_empty = given.get("allow_empty")?.unwrap_or_default();
    options.memory_bytes = given.memory()?.unwrap_or(options.memory_bytes);
    options.threads = given.threads()?.unwrap_or(options.threads);
    let (report, warnings) = match components {
        Some(components) => of_rows(py, options, components)?,
        None => of_files(py, &options, &given)?,
    };
    let built = Published { graph, built: &workshop, to: &to };
    interruptible(py, &Stop::default(), || built.publish(&report))?;
    Ok(replied(version, report, warnings))
}

struct Published<'a> {
    graph: &'a str,
    built: &'a Workshop,
    to: &'a Objects,
}

impl Published<'_> {
    fn publish(&self, report: &LoadReport) -> Result<(), Failure> {
        let manifests = report.components.iter().map(|(manifest, _)| manifest);
        publish_graph(self.graph, manifests, self.built.folder(), self.to, &mut |_| {})
    }
}

fn replied(version: StoreVersion, report: LoadReport, warnings: Vec<String>) -> BuiltGraph {
    let component = |(manifest, it): &(Manifest, BuildSummary)| {
        let role = manifest.graph().map_or("values", |graph| role_name(graph.role));
        let counts =
            (it.members, it.edges, it.entities, it.self_loops, it.duplicates, it.both_orders, it.bytes);
        let (members, edges, entities, loops, duplicates, both, bytes) = counts;
        let name = manifest.component.clone();
        (name, role, members, edges, entities, loops, duplicates, both, bytes, manifest.hash())
    };
    let components = report.components.iter().map(component).collect();
    let file = |file: &LoadedFile| {
        let read = &file.report;
        (read.path.clone(), file.role.name(), read.rows, read.taken.clone())
    };
    let files = report.files.iter().map(file).collect();
    (version.0, components, dropped(DroppedRows::of_files(&report.files)), files, warnings)
}

fn of_files(
    py: Python<'_>,
    options: &GraphOptions,
    given: &Given<'_, '_>,
) -> PyResult<(LoadReport, Vec<String>)> {
    let (version, partitions) = (options.version, options.partitions);
    let mut load = LoadOptions::new(&options.graph, version, partitions, options.out_dir.clone());
    load.edges = given.get::<Vec<PathBuf>>("edges")?.unwrap_or_default();
    load.entities = given.get::<Vec<PathBuf>>("entities")?.unwrap_or_default();
    load.members = given.get::<Vec<PathBuf>>("members")?.unwrap_or_default();
    load.edge_type = given.get("edge_type")?.unwrap_or(load.edge_type);
    load.directed = given.get("directed")?.unwrap_or_default();
    load.edge_columns = EdgeColumns {
        src: given.word::<ColumnRef>("src")?,
        dst: given.word::<ColumnRef>("dst")?,
        columns: columns(&given.get::<Vec<String>>("columns")?.unwrap_or_default())?,
    };
    load.entity_columns = columns(&given.get::<Vec<String>>("entity_columns")?.unwrap_or_default())?;
    load.files.unpacked_max = given.get("unpacked_max")?;
    load.files.delimiter = given.delimiter()?;
    load.files.max_errors = given.get("max_errors")?.unwrap_or_default();
    load.files.header = match given.get::<bool>("header")? {
        None => HeaderMode::Detect,
        Some(true) => HeaderMode::Present,
        Some(false) => HeaderMode::Absent,
    };
    load.allow_empty = options.allow_empty;
    load.memory_bytes = options.memory_bytes;
    load.threads = options.threads;
    let report = interruptible(py, &load.stop, || {
        // The load checks names in files. The builder checks the name of the graph.
        GraphBuilder::new(options.clone())?;
        load_graph(&load, &mut |_| {})
    })?;
    let doubts = report.files.iter().filter_map(|file| {
        let doubt = file.report.unlikely_time.as_ref()?;
        Some(format!("{}: {doubt}", file.report.path.display()))
    });
    let warnings = doubts.collect();
    Ok((report, warnings))
}

fn of_rows(
    py: Python<'_>,
    options: GraphOptions,
    components: Vec<GivenRows<'_>>,
) -> PyResult<(LoadReport, Vec<String>)> {
    let mut graph = GraphBuilder::new(options).map_err(raised)?;
    for (name, role, named, rows) in components {
        check_rows(&rows)?;
        let role = role_by_name(&role).ok_or_else(|| PyValueError::new_err("there is no such role"))?;
        let columns = columns(&named)?;
        let component = graph.component(&name, role, &columns).map_err(raised)?;
        take(py, component, role, &rows)?;
    }
    let warnings = graph.unlikely_time().map(|doubt| format!("rows: {doubt}")).into_iter().collect();
    let components = graph.finish().map_err(raised)?;
    Ok((LoadReport { components, files: Vec::new() }, warnings))
}

/// Adds all rows to a component and finishes it.
fn take(
    py: Python<'_>,
    mut component: ComponentRows<'_>,
    role: KindRole,
    rows: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mut batch = Vec::new();
    for row in rows.try_iter()? {
        let row = row?;
        let mut cells = Vec::new();
        match role {
            KindRole::MembersOnly => cells.push(Cell::of(&row)?),
            _ => parts(&row, |part| {
                cells.push(Cell::of(part)?);
                Ok(())
            })?,
        }
        batch.push(cells);
        if BATCH_ROWS <= batch.len() {
            py.detach(|| put(&mut component, role, &mut batch)).map_err(raised)?;
            py.check_signals()?;
        }
    }
    // Nothing reads the stop flag, because a component with all its rows is written to the end.
    interruptible(py, &Stop::default(), || {
        put(&mut component, role, &mut batch)?;
        component.finish(&mut |_| {}).map(|_| ())
    })
}

fn put(component: &mut ComponentRows<'_>, role: KindRole, batch: &mut Vec<Vec<Cell>>) -> Result<(), Failure> {
    batch.drain(..).try_for_each(|cells| match (role, cells.as_slice()) {
        (KindRole::MembersOnly, [id, ..]) => match id.id() {
            Ok(id) => component.member(id),
            Err(why) => Err(component.wrong(&format!("id {why}"))),
        },
        (_, [src, dst, columns @ ..]) => {
            let names = if role == KindRole::Entity { ["member", "entity"] } else { ["src", "dst"] };
            let ids = [src.id(), dst.id()];
            for (name, id) in names.iter().zip(&ids) {
                if let Err(why) = id {
                    return Err(component.wrong(&format!("{name} {why}")));
                }
            }
            let values = columns.iter().map(Cell::column).collect::<Result<Vec<_>, _>>();
            let values = values.map_err(|kind| component.wrong(&format!("a column is {kind}")))?;
            component.edge(ids[0].clone().unwrap_or_default(), ids[1].clone().unwrap_or_default(), &values)
        }
        (_, cells) => Err(component.wrong(&format!("expected at least 2 columns, got {}", cells.len()))),
    })
}

fn columns(texts: &[String]) -> PyResult<Vec<ColumnSpec>> {
    let parsed = texts.iter().map(|text| text.parse::<ColumnSpec>());
    let parsed = parsed.collect::<Result<Vec<_>, _>>();
    parsed.map_err(|error| PyValueError::new_err(format!("columns: {error}")))
}
