//! The flags of `kith import`.

use crate::{
    failure::Failure,
    names::{delimiter, duration, graph_name, size},
};
use clap::Args;
use kith_build::rows::graph::TimeUnit;
use kith_build::{ColumnRef, FileOptions, HeaderMode};
use kith_types::file_part;
use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

/// The longest line. It has room for the largest object as JSON in a quoted field: 1 MiB of control characters of 6 bytes
/// each.
const LINE_BYTES_MAX: usize = 16 << 20;

/// The place of the time among the columns of associations.
const TIME_PLACE: usize = 2;

/// The description of a file, and where its rows go.
#[derive(Clone, Debug, Args)]
pub struct ImportFlags {
    /// The live graph
    #[arg(value_parser = graph_name)]
    pub graph: String,
    /// A file of associations: id1,id2,time and optionally data, a JSON object; `-` reads standard input
    #[arg(long, value_name = "FILE", required_unless_present = "objects", conflicts_with = "objects")]
    assocs: Option<PathBuf>,
    /// A file of objects: id and optionally data, a JSON object; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    objects: Option<PathBuf>,
    /// The type of all objects or associations of the file
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: String,
    /// The columns to read, in the order `id1,id2,time[,data]` or `id[,data]`: their names, or their positions from 1. A
    /// time that is not in milliseconds is written `NAME:time-s` (seconds), `:time-us` or `:time-ns`
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Vec<ImportColumn>,
    /// What separates columns: a character, or tab, comma, semicolon, pipe, space [default: detected]
    #[arg(long, value_parser = delimiter)]
    delimiter: Option<u8>,
    /// The file has a header line [default: detected]
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// The file has no header line
    #[arg(long)]
    no_header: bool,
    /// Drop up to this many invalid lines instead of refusing the file
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_errors: u64,
    /// Writes in flight at once
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub concurrency: u16,
    /// How long to repeat a write that fails because of an outage, at most 1h
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1m")]
    pub retry_for: Duration,
    /// Where the progress is kept, so that the same command continues after an interruption [default: a file beside FILE]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The most bytes that the rows may take once they are read, such as 20GiB [default: 1000 times the size of the file, and at
    /// least 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    unpacked_max: Option<usize>,
    /// Read and check the file without writing anything
    #[arg(long)]
    pub dry_run: bool,
}

/// A column to read: where it is, and the unit of its times if one is named.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ImportColumn {
    at: ColumnRef,
    unit: Option<TimeUnit>,
}

impl FromStr for ImportColumn {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Names of columns may contain colons, as `:START_ID` does.
        let kind = text.rsplit_once(':').and_then(|(at, kind)| Some((at, TimeUnit::of_kind(kind)?)));
        let (at, unit) = kind.map_or((text, None), |(at, unit)| (at, Some(unit)));
        Ok(Self { at: at.parse()?, unit })
    }
}

/// The target that the rows of a file are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Objects,
    Associations,
}

impl ImportFlags {
    /// Returns what the rows are written as.
    pub fn target(&self) -> Target {
        if self.objects.is_some() { Target::Objects } else { Target::Associations }
    }

    /// The file, as the user named it.
    fn named(&self) -> &Path {
        let file = self.objects.as_ref().or(self.assocs.as_ref());
        file.expect("one of both is required").as_path()
    }

    /// The path to read.
    pub fn file(&self) -> &Path {
        if self.named().as_os_str() == "-" { Path::new("/dev/stdin") } else { self.named() }
    }

    /// The checkpoint file for this file, graph and type. `None` for standard input and pipes, which cannot be read again.
    pub fn checkpoint(&self) -> Option<PathBuf> {
        let is_file = self.named() == self.file() && self.file().is_file();
        if !is_file {
            return None;
        }
        let beside = || {
            let mut path = self.file().as_os_str().to_owned();
            path.push(format!(".{}.{}.kith-import", self.graph, file_part(&self.kind)));
            path.into()
        };
        Some(self.checkpoint.clone().unwrap_or_else(beside))
    }

    /// Whether the user names the checkpoint file.
    pub fn names_checkpoint(&self) -> bool {
        self.checkpoint.is_some()
    }

    /// Refuses flags that contradict each other.
    ///
    /// # Errors
    /// A usage error that names the flag.
    pub fn check(&self) -> Result<(), Failure> {
        let (names, least, most) = match self.target() {
            Target::Objects => ("id[,data]", 1, 2),
            Target::Associations => ("id1,id2,time[,data]", 3, 4),
        };
        let count = self.columns.len();
        if count != 0 && !(least..=most).contains(&count) {
            let message = format!("--columns names {count} columns, but {names} are to be read");
            return Err(Failure::usage(message, format!("name them in this order: {names}")));
        }
        let columns = self.columns();
        if (1..count).any(|index| columns[..index].contains(&columns[index])) {
            return Err(Failure::usage("--columns names a column twice", "name each column once"));
        }
        let mut units = self.columns.iter().enumerate().filter(|(_, column)| column.unit.is_some());
        if units.any(|(index, _)| self.target() == Target::Objects || index != TIME_PLACE) {
            let message = "--columns gives a unit of time to a column that is not the time of associations";
            return Err(Failure::usage(message, "give the unit to the third column of --assocs"));
        }
        Ok(())
    }

    /// The columns to read.
    pub fn columns(&self) -> Vec<ColumnRef> {
        self.columns.iter().map(|column| column.at.clone()).collect()
    }

    /// The unit of times that are plain numbers.
    pub fn time_unit(&self) -> TimeUnit {
        self.columns.get(TIME_PLACE).and_then(|column| column.unit).unwrap_or_default()
    }

    /// The options for reading the file.
    pub fn files(&self) -> FileOptions {
        FileOptions {
            delimiter: self.delimiter,
            header: match (self.header, self.no_header) {
                (true, _) => HeaderMode::Present,
                (_, true) => HeaderMode::Absent,
                _ => HeaderMode::Detect,
            },
            max_errors: self.max_errors,
            line_bytes_max: LINE_BYTES_MAX,
            unpacked_max: self.unpacked_max.map(|most| most as u64),
            ..FileOptions::default()
        }
    }

    /// The number of invalid lines that are allowed.
    pub fn max_errors(&self) -> u64 {
        self.max_errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use kith_types::ErrorCode;

    fn flags(rest: &str) -> Result<Box<ImportFlags>, clap::Error> {
        match Cli::try_parse_from(format!("kith import g {rest}").split_whitespace())?.command {
            Command::Import(flags) => Ok(flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_of_objects_or_of_associations() {
        let objects = flags("--objects o.csv --type person --columns 2,1").unwrap();
        assert_eq!((objects.target(), objects.columns.len()), (Target::Objects, 2));
        assert!(objects.check().is_ok());
        for line in [
            "--type t",
            "--objects a --assocs b --type t",
            "--objects a",
            "--assocs a --type t --retry-for 2h",
        ] {
            assert!(flags(line).is_err(), "{line}");
        }
    }

    #[test]
    fn columns_must_be_those_that_the_rows_need() {
        for line in [
            "--objects a --type t --columns a,b,c",
            "--assocs a --type t --columns a,b",
            "--assocs a --type t --columns a,b,c,d,e",
            "--assocs a --type t --columns a,b,a",
            "--assocs a --type t --columns a,b:time-s,c",
            "--objects a --type t --columns a,b:time-s",
        ] {
            assert_eq!(flags(line).unwrap().check().unwrap_err().code, ErrorCode::Usage, "{line}");
        }
        assert!(flags("--assocs a --type t --columns src,dst,created_ms").unwrap().check().is_ok());
        let named = flags("--assocs a --type t --columns :START_ID,2,at:time-s").unwrap();
        assert!(named.check().is_ok());
        let columns = [":START_ID", "2", "at"].map(|at| at.parse().unwrap());
        assert_eq!((named.columns(), named.time_unit()), (columns.to_vec(), TimeUnit::Seconds));
    }

    #[test]
    fn what_can_be_read_only_once_has_no_checkpoint() {
        assert_eq!(flags("--objects - --type t").unwrap().checkpoint(), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let beside = flags(&format!("--objects {path} --type t")).unwrap().checkpoint().unwrap();
        assert_eq!(beside.display().to_string(), format!("{path}.g.t.kith-import"));
        let named = flags(&format!("--objects {path} --type t --checkpoint c")).unwrap().checkpoint();
        assert_eq!(named, Some("c".into()));
    }
}
