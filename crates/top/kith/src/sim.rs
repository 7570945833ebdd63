//! `kith sim`: draws the figures of Moolle from simulated clusters, which run the deciding code of real ones
//! (`docs/figures.md`). It needs no cluster.

use crate::{
    failure::{Exit, Failure},
    output::{self, Format},
};
use clap::{Args, Subcommand};
use kith_query::line::near_miss;
use kith_sim::figures::{self, Figure};
use serde::Serialize;
use std::{fmt::Write as _, path::PathBuf};

#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Draw figures of the Moolle paper as CSV and SVG, or list them
    ///
    /// The simulation runs the policies, controllers and executions of production on a model of the paper's 200 nodes.
    FanOut(FanOutFlags),
}

#[derive(Debug, Args)]
pub struct FanOutFlags {
    /// Figures to draw: 5, 6, 7a, 7b, 8a, 8b, 9a, 9b, 9c, 9d, the reports tail and cache, or all
    #[arg(long, value_name = "NAME", value_delimiter = ',', required_unless_present = "list")]
    figure: Vec<String>,
    /// Folder for the files
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
    /// Seed of all random numbers: equal seeds draw equal figures
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// List the figures with their parameters and assumptions, and draw nothing
    #[arg(long, conflicts_with_all = ["figure", "out", "seed"])]
    list: bool,
}

/// A figure in the output of `--list`. The field names are a contract: see `docs/figures.md`.
#[derive(Clone, Debug, Serialize)]
struct Listed {
    name: &'static str,
    title: &'static str,
    shows: &'static str,
    parameters: &'static [&'static str],
    assumptions: &'static [&'static str],
}

/// A figure that was drawn. The field names are a contract: see `docs/figures.md`.
#[derive(Clone, Debug, Serialize)]
struct Drawn {
    figure: &'static str,
    files: Vec<PathBuf>,
}

/// Draws or lists figures.
///
/// # Errors
/// If a figure is unknown or its files cannot be written.
pub fn run(format: Format, command: SimCommand) -> anyhow::Result<Exit> {
    let SimCommand::FanOut(flags) = command;
    if flags.list {
        output::print(format, &listed(), |_| list_text())?;
        return Ok(Exit::Done);
    }
    let wanted = flags.figure.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
    let mut drawn = Vec::new();
    for figure in wanted.into_iter().flatten() {
        eprintln!("simulating figure {} …", figure.name);
        let files = figures::write(figure, &figure.run(flags.seed), &flags.out).map_err(Failure::from)?;
        drawn.push(Drawn { figure: figure.name, files });
    }
    output::print(format, &drawn, |drawn| drawn_text(drawn))?;
    Ok(Exit::Done)
}

fn named(name: &str) -> Result<&'static [Figure], Failure> {
    if name == "all" {
        return Ok(figures::ALL);
    }
    let found = figures::ALL.iter().position(|figure| figure.name == name);
    found.map(|index| &figures::ALL[index..=index]).ok_or_else(|| {
        let names: Vec<&str> = figures::ALL.iter().map(|figure| figure.name).collect();
        let meant = near_miss(name, &names).map_or(String::new(), |near| format!("did you mean {near}? "));
        Failure::usage(
            format!("there is no figure {name:?}"),
            format!("{meant}figures: {}, or all", names.join(", ")),
        )
    })
}

fn listed() -> Vec<Listed> {
    let listed = |figure: &Figure| Listed {
        name: figure.name,
        title: figure.title,
        shows: figure.shows,
        parameters: figure.parameters,
        assumptions: figure.assumptions,
    };
    figures::ALL.iter().map(listed).collect()
}

fn list_text() -> String {
    figures::ALL.iter().fold(String::new(), |mut text, figure| {
        writeln!(text, "{figure}").expect("a String takes everything");
        text
    })
}

fn drawn_text(drawn: &[Drawn]) -> String {
    let files = drawn.iter().flat_map(|drawn| &drawn.files);
    files.map(|file| format!("wrote {}\n", file.display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(figure: &str, out: PathBuf) -> SimCommand {
        SimCommand::FanOut(FanOutFlags { figure: vec![figure.to_owned()], out, seed: 1, list: false })
    }

    #[test]
    fn a_figure_is_written_where_it_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("new");
        assert_eq!(run(Format::Json, flags("7b", out.clone())).unwrap(), Exit::Done);
        let csv = std::fs::read_to_string(out.join("7b.csv")).unwrap();
        assert!(csv.contains("requests,Moolle (1),200,20.000000"), "{csv}");
        assert!(std::fs::read_to_string(out.join("7b.svg")).unwrap().starts_with("<svg"));
    }

    #[test]
    fn an_unknown_figure_is_a_usage_error_that_names_the_others() {
        let error = run(Format::Table, flags("7c", PathBuf::new())).unwrap_err();
        let report = crate::failure::ErrorReport::of(&error);
        assert!(
            report.text(false).starts_with("error[usage]: there is no figure \"7c\"\nhelp: did you mean 7")
        );
        assert!(report.text(false).contains("9d, tail, cache, or all") && report.exit() == Exit::Usage);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported_with_its_cause() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = run(Format::Table, flags("7b", file.path().to_owned())).unwrap_err();
        let text = crate::failure::ErrorReport::of(&error).text(false);
        assert!(text.starts_with("error[cannot_write]: cannot write ") && text.contains("xists"), "{text}");
    }

    #[test]
    fn the_strategy_that_is_called_default_is_what_sessions_do() {
        let settings = kith_session::SessionSettings::default();
        let strategy = kith_sim::cluster::Strategy::kith();
        assert_eq!((strategy.name.as_str(), strategy.policy.name()), ("default", settings.policy.as_str()));
        assert_eq!(Ok(strategy.hedging), settings.hedging());
        let controllers = settings.controllers().unwrap();
        assert_eq!(format!("{:?}", strategy.controllers), format!("{controllers:?}"));
    }

    #[test]
    fn the_list_explains_every_figure() {
        let text = list_text();
        for figure in listed() {
            assert!(text.contains(figure.title) && text.contains(figure.assumptions[0]), "{}", figure.name);
        }
    }
}
