//! Builds a small graph and a small store from rows, and publishes both to a folder or to the given place.
//!
//! `cargo run -p kith-build --example build -- [PLACE]`, such as `built`, or `s3://bucket/prefix` with the keys of the
//! bucket in the environment (docs/operating/object-stores.md).

use kith_build::{
    ColumnValue, Failure, GraphBuilder, GraphOptions, Objects, RowKey, RowSettings, RowValue, SchemaFrom,
    Shape, StoreBuilder, Target, Workshop, next_graph_version, next_version, open_objects, publish_graph,
    publish_version, version_dir,
};
use kith_schema::{KeyType, KindRole, ValueType};
use kith_types::PartitionCount;
use std::process::ExitCode;

/// The number of partitions of `kith dev`.
const PARTITIONS: u32 = 24;

fn main() -> ExitCode {
    let out = std::env::args().nth(1).unwrap_or_else(|| "built".to_owned());
    let partitions = PartitionCount::new(PARTITIONS).expect("it is not 0");
    let published = open_objects(&out).and_then(|out| {
        graph(&out, partitions)?;
        store(&out.join("pages"), partitions)
    });
    match published {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message, help, wrong }) => {
            eprintln!("{}\nerror[{code}]: {message}\nhelp: {help}", wrong.join("\n"));
            ExitCode::FAILURE
        }
    }
}

/// Builds friendships with their times, and schools of members, as `<out>/village/<component>/<version>`.
fn graph(out: &Objects, partitions: PartitionCount) -> Result<(), Failure> {
    let workshop = Workshop::of(out)?;
    let version = next_graph_version(out, "village")?;
    let options = GraphOptions::new("village", version, partitions, workshop.folder().to_owned());
    let mut graph = GraphBuilder::new(options)?;
    let since = ["since:time".parse().expect("a column")];
    let mut friends = graph.component("connection", KindRole::Undirected, &since)?;
    for (a, b, since) in [(1, 2, "2024-05-01T12:00:00Z"), (2, 3, "2025-01-31T08:30:00Z")] {
        friends.edge(a, b, &[ColumnValue::Text(since)])?;
    }
    let counted = friends.finish(&mut |_| {})?;
    let mut schools = graph.component("school", KindRole::Entity, &[])?;
    schools.edge(1, 70, &[])?;
    schools.edge(3, 70, &[])?;
    schools.finish(&mut |_| {})?;
    let built = graph.finish()?;
    publish_graph(
        "village",
        built.iter().map(|(manifest, _)| manifest),
        workshop.folder(),
        out,
        &mut |_| {},
    )?;
    println!(
        "graph village, version {}: {} edges between {} members",
        version.0, counted.edges, counted.members
    );
    Ok(())
}

/// Builds records by id as `<out>/<version>`, which `kith store push pages` accepts.
fn store(out: &Objects, partitions: PartitionCount) -> Result<(), Failure> {
    let schema = r#"{"fields":[{"name":"title","type":"text"},{"name":"embed","type":"vector<f32,2>"}]}"#;
    let schema = SchemaFrom::Given(schema.parse().expect("a schema"));
    let settings = RowSettings { schema: Some(schema), ..RowSettings::default() };
    let shape = Shape::stated(Some(KeyType::Id), Some(ValueType::Record), partitions);
    let workshop = Workshop::of(out)?;
    let version = next_version(out)?;
    let target = Target { store: "pages", version, out_dir: workshop.folder().to_owned() };
    let mut pages = StoreBuilder::new(&target, &shape, &settings)?;
    for id in 0..100 {
        let record = format!(r#"{{"title":"Page {id}","embed":[0.5,{id}]}}"#);
        pages.put(RowKey::Id(id), RowValue::Json(&record))?;
    }
    let built = pages.finish(&mut |_| {})?;
    let to = out.join(&version.0.to_string());
    publish_version(None, &version_dir(workshop.folder(), version), &to, &mut |_| {})?;
    println!("store pages, {} records: {}", built.records(), to.location());
    Ok(())
}
