//! Golden tests: command lines, and what they print for people.

use super::{answer, plan};
use crate::{
    ask,
    cli::{Cli, Command},
    fake::{self, Fake},
    golden,
    graph::GraphCommand,
    write::LiveCommand,
};
use clap::Parser;
use futures::FutureExt;
use kith_lines::GraphLine;
use kith_wire::v1;

fn outcome(line: &str) -> String {
    let render = |line: &GraphLine| {
        let answered = ask::answer(&Fake, line).now_or_never().expect("the fake never waits").unwrap();
        answer::render(line, &answered)
    };
    match Cli::try_parse_from(line.split(' ')).unwrap().command {
        Command::Graph(GraphCommand::Ask(question)) => render(&question.line),
        Command::Object(LiveCommand::Read(question)) => render(&question.line),
        Command::Assoc(LiveCommand::Read(question)) => render(&question.line),
        Command::Explain(_) => {
            let notes = vec!["the network cache was not asked".to_owned()];
            plan::explain(&v1::ExplainReply { plan: Some(fake::profile()), notes }.into())
        }
        other => panic!("{other:?} prints no answer"),
    }
}

#[test]
fn answers_are_readable() {
    golden::check("tables.txt", outcome);
}
