//! The flags of `kith load graph`, and the check that they do not contradict each other.

use crate::{
    failure::Failure,
    names::{delimiter, graph_name, node_wait, size},
};
use clap::Args;
use kith_build::{
    ColumnRef, ColumnSpec, EdgeColumns, FileOptions, HeaderMode, LoadOptions, MEMBERS_COMPONENT,
    MEMORY_BYTES_DEFAULT,
};
use kith_types::{ErrorCode, PartitionCount, StoreVersion};
use kith_wire::documents::StoreDocument;
use std::path::PathBuf;

/// The edge type of a load that does not name one.
const EDGE_TYPE_DEFAULT: &str = "connection";
/// The smallest memory that can hold the buffers of a merge.
const MEMORY_BYTES_MIN: usize = 16 << 20;

#[derive(Debug, Args)]
pub struct GraphLoadFlags {
    /// Files of edges, one edge per line or row
    #[arg(value_name = "EDGES", required_unless_present_any = ["entities", "members", "built"])]
    edges: Vec<PathBuf>,
    /// The graph to load into; it is created if it does not exist
    #[arg(short, long, value_name = "NAME", value_parser = graph_name)]
    pub graph: String,
    /// A folder or URL that a program built the graph into: its newest version is loaded. Of a URL, nodes pull it from there
    #[arg(long, value_name = "PLACE", conflicts_with_all = [
        "edges", "edge_type", "directed", "entities", "members", "src", "dst", "columns", "entity_columns", "delimiter",
        "header", "no_header", "max_errors", "allow_empty", "dry_run", "memory", "unpacked_max", "threads",
    ])]
    pub built: Option<String>,
    /// Name of the edge type [default: connection]
    #[arg(long, value_name = "NAME")]
    edge_type: Option<String>,
    /// Edges are directed, from the first column to the second
    #[arg(long)]
    directed: bool,
    /// A file of member,kind,entity lines; each kind becomes an entity kind of the graph
    #[arg(long, value_name = "FILE")]
    entities: Vec<PathBuf>,
    /// A file of member ids, for members without edges
    #[arg(long, value_name = "FILE")]
    members: Vec<PathBuf>,
    /// The column of the first id: its name, or its position from 1
    #[arg(long, value_name = "COLUMN")]
    src: Option<ColumnRef>,
    /// The column of the second id: its name, or its position from 1
    #[arg(long, value_name = "COLUMN")]
    dst: Option<ColumnRef>,
    /// More columns of edges to keep: NAME or NAME=POSITION, optionally with :time, :u64, :i64 or :f64, such as created_ms:time
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Vec<ColumnSpec>,
    /// More columns of entities to keep, such as year:u64
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    entity_columns: Vec<ColumnSpec>,
    /// What separates columns: a character, or tab, comma, semicolon, pipe, space [default: detected]
    #[arg(long, value_parser = delimiter)]
    delimiter: Option<u8>,
    /// The files have a header line [default: detected]
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// The files have no header line
    #[arg(long)]
    no_header: bool,
    /// Drop up to this many invalid lines of each file instead of refusing the file
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_errors: u64,
    /// Allow a file without edges, which empties the edge type
    #[arg(long)]
    pub allow_empty: bool,
    /// Allow the load to drop columns that the edge type or entity kind has now
    #[arg(long)]
    pub drop_columns: bool,
    /// How long to wait for a node that is down before the load fails, at most 1h [default: 1m]
    #[arg(long = "node-wait", value_name = "DURATION", value_parser = node_wait)]
    pub node_wait_ms: Option<u64>,
    /// Read and check the files without building or changing anything; needs no cluster
    #[arg(long)]
    pub dry_run: bool,
    /// Memory for sorting, such as 512MiB
    #[arg(long, value_name = "SIZE", value_parser = size, default_value_t = MEMORY_BYTES_DEFAULT, hide_default_value = true)]
    memory: usize,
    /// The most bytes that the rows may take once they are read, such as 20GiB [default: 1000 times the size of the files, and at
    /// least 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    unpacked_max: Option<usize>,
    /// Threads to sort and write with [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

impl GraphLoadFlags {
    /// Refuses flags that contradict each other.
    ///
    /// # Errors
    /// A usage error that names the flags.
    pub fn check(&self) -> Result<(), Failure> {
        let of_edges = [
            ("--directed", self.directed),
            ("--edge-type", self.edge_type.is_some()),
            ("--columns", !self.columns.is_empty()),
            ("--src", self.src.is_some()),
            ("--dst", self.dst.is_some()),
        ];
        if let Some((flag, _)) = of_edges.iter().find(|(_, given)| *given && self.edges.is_empty()) {
            let message = format!("{flag} describes edges, but no file of edges is given");
            return Err(Failure::usage(message, "name the file of edges, or leave the flag out"));
        }
        if !self.entity_columns.is_empty() && self.entities.is_empty() {
            let message = "--entity-columns describes entities, but no file of entities is given";
            return Err(Failure::usage(message, "name it with --entities, or leave the flag out"));
        }
        if self.src.is_some() && self.src == self.dst {
            return Err(Failure::usage("--src and --dst name the same column", "name two columns"));
        }
        if self.edge_type() == MEMBERS_COMPONENT {
            let message = format!(
                "an edge type cannot be called {MEMBERS_COMPONENT:?}, which is the name of the member list"
            );
            return Err(Failure::usage(message, "choose another --edge-type"));
        }
        if self.memory < MEMORY_BYTES_MIN {
            let message = format!("--memory {} is too little to sort with", self.memory);
            return Err(Failure::usage(message, "give at least 16MiB"));
        }
        self.check_files()
    }

    fn check_files(&self) -> Result<(), Failure> {
        let mut files: Vec<&PathBuf> = self.edges.iter().chain(&self.entities).chain(&self.members).collect();
        files.sort();
        match files.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                Err(Failure::usage(format!("{} is given twice", pair[0].display()), "give it once"))
            }
            None => Ok(()),
        }
    }

    /// Refuses an edge type that the graph has in another role, or with columns that the load would drop, before a build that
    /// may take hours.
    ///
    /// # Errors
    /// `role_changed`, `incompatible_schema`.
    pub fn check_against(&self, graph: Option<&StoreDocument>) -> Result<(), Failure> {
        let role = if self.directed { "directed" } else { "undirected" };
        let current = graph.and_then(StoreDocument::current);
        let known =
            current.and_then(|graph| graph.components.iter().find(|known| known.name == self.edge_type()));
        match known {
            Some(known) if !self.edges.is_empty() && known.role == role => {
                let columns: Vec<_> = self.columns.iter().map(ColumnSpec::column).collect();
                super::columns::check_before(known, &columns, self.drop_columns)
            }
            Some(known) if !self.edges.is_empty() => {
                let name = &known.name;
                let message = format!(
                    "{name:?} of graph {:?} is {}, but this load would make it {role}",
                    self.graph, known.role
                );
                Err(Failure::new(
                    ErrorCode::RoleChanged,
                    message,
                    "load it under another name, or drop the graph first",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns the flags as options of the engine.
    ///
    /// # Errors
    /// The same as those of [`GraphLoadFlags::check`].
    pub fn options(
        &self,
        version: u64,
        partitions: PartitionCount,
        out_dir: PathBuf,
    ) -> Result<LoadOptions, Failure> {
        self.check()?;
        let mut options = LoadOptions::new(&self.graph, StoreVersion(version), partitions, out_dir);
        options.edges.clone_from(&self.edges);
        options.edge_type = self.edge_type().to_owned();
        options.directed = self.directed;
        options.edge_columns =
            EdgeColumns { src: self.src.clone(), dst: self.dst.clone(), columns: self.columns.clone() };
        options.entities.clone_from(&self.entities);
        options.entity_columns.clone_from(&self.entity_columns);
        options.members.clone_from(&self.members);
        options.files = FileOptions {
            delimiter: self.delimiter,
            header: match (self.header, self.no_header) {
                (true, _) => HeaderMode::Present,
                (_, true) => HeaderMode::Absent,
                _ => HeaderMode::Detect,
            },
            max_errors: self.max_errors,
            unpacked_max: self.unpacked_max.map(|most| most as u64),
            ..FileOptions::default()
        };
        options.allow_empty = self.allow_empty;
        options.dry_run = self.dry_run;
        options.memory_bytes = self.memory;
        options.threads = self.threads.map_or(options.threads, usize::from);
        Ok(options)
    }

    fn edge_type(&self) -> &str {
        self.edge_type.as_deref().unwrap_or(EDGE_TYPE_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use crate::load::{GraphLoadFlags, LoadCommand};
    use clap::Parser;
    use kith_types::ErrorCode;
    use kith_wire::documents::{
        ComponentDocument, DOCUMENT_FORMAT, DefinitionDocument, HoldsDocument, StoreDocument, VersionDocument,
    };

    fn flags(rest: &str) -> Result<Box<GraphLoadFlags>, clap::Error> {
        let line = format!("kith load graph --graph v {rest}");
        match Cli::try_parse_from(line.split_whitespace())?.command {
            Command::Load(LoadCommand::Graph(flags)) => Ok(flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_become_options() {
        let flags = flags(
            "a.csv b.csv --edge-type follows --directed --entities e.csv --columns created_ms:time,w=4:f64 \
             --delimiter tab --no-header --max-errors 5 --memory 64MiB --threads 3",
        );
        let partitions = kith_types::PartitionCount::new(24).unwrap();
        let options = flags.unwrap().options(7, partitions, "store".into()).unwrap();
        assert_eq!((options.edges.len(), options.edge_type.as_str(), options.directed), (2, "follows", true));
        assert_eq!((options.version.0, options.threads, options.memory_bytes), (7, 3, 64 << 20));
        assert_eq!((options.files.delimiter, options.files.max_errors), (Some(b'\t'), 5));
        let columns: Vec<&str> =
            options.edge_columns.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(columns, ["created_ms", "w"]);
    }

    #[test]
    fn contradictions_are_refused() {
        for line in ["--built out a.csv", "--built out --directed", "--built out --dry-run"] {
            assert!(flags(line).is_err(), "{line}");
        }
        assert!(flags("--built out").unwrap().check().is_ok());
        for line in ["", "a.csv --header --no-header", "a.csv --columns x:date", "a.csv --threads 0"] {
            assert!(flags(line).is_err(), "{line}");
        }
        for line in [
            "--members m.csv --directed",
            "--entities e.csv --edge-type follows",
            "--members m.csv --columns year",
            "a.csv --entity-columns year",
            "a.csv --src 1 --dst 1",
            "a.csv --edge-type members",
            "a.csv --memory 1KiB",
            "a.csv a.csv",
        ] {
            assert_eq!(flags(line).unwrap().check().unwrap_err().code, ErrorCode::Usage, "{line}");
        }
    }

    #[test]
    fn an_edge_type_keeps_its_role() {
        let component = ComponentDocument {
            name: "connection".to_owned(),
            role: "undirected".to_owned(),
            version: 1,
            manifest_hash: String::new(),
            columns: Vec::new(),
            members: 0,
            edges: 0,
            bytes: 0,
            loaded_at: 0,
            schema: None,
            folder: None,
            url: None,
        };
        let version = VersionDocument {
            version: 1,
            state: "current".to_owned(),
            components: vec![component],
            records: 0,
            bytes: 0,
            pushed_at: 0,
            held: false,
            excluded: Vec::new(),
        };
        let graph = StoreDocument {
            format: DOCUMENT_FORMAT,
            name: "v".to_owned(),
            charged_to: String::new(),
            definition: DefinitionDocument::new(HoldsDocument::Graph),
            version_last: 1,
            versions: vec![version],
            running: None,
            frozen: None,
            cancelled: Vec::new(),
            history: Vec::new(),
        };
        let check = |line| flags(line).unwrap().check_against(Some(&graph)).map_err(|failure| failure.code);
        assert_eq!(check("a.csv"), Ok(()));
        assert_eq!(check("a.csv --directed"), Err(ErrorCode::RoleChanged));
        assert_eq!(check("a.csv --directed --edge-type follows"), Ok(()));
        assert_eq!(check("--members a.csv"), Ok(()));
    }
}
