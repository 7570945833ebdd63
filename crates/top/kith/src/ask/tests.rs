//! Golden tests: request lines, the calls of the service that they cause, and the lines of the answers.

use crate::{
    ask,
    failure::{ErrorReport, Failure},
    fake::Fake,
    golden, output,
    read::Shapes,
};
use futures::FutureExt;
use kith_query::line::{BatchFields, Line, StoreLine};

fn outcome(line: &str) -> String {
    let question = match kith_query::line::parse(line) {
        Ok(Line::Graph(question)) => question,
        Ok(Line::Batch(batch)) => return of_batch(&batch),
        Ok(Line::Compute(_) | Line::Aggregate(_) | Line::Gremlin(_) | Line::Write(_)) => {
            panic!("the fake holds no records")
        }
        Err(failure) => return output::json_line(&ErrorReport::from(Failure::from(failure))),
    };
    let query = question.query();
    let answer = ask::answer(&Fake, &question).now_or_never().expect("the fake never waits");
    let answer = match answer {
        Ok(answer) => output::json_line(&answer),
        Err(error) => output::json_line(&ErrorReport::of(&error)),
    };
    format!(
        "{:?} of {:?}, edge type {:?}, direction {:?}\n{:?}\n{answer}",
        query.operation,
        question.options.graph,
        query.edge_type,
        query.direction,
        question.query_options(),
    )
}

fn of_batch(batch: &StoreLine<BatchFields>) -> String {
    let shapes = Shapes::default();
    let line = match shapes.read(&Fake, batch).now_or_never().expect("the fake never waits") {
        Ok(answer) => output::json_line(&answer),
        Err(error) => output::json_line(&ErrorReport::of(&error)),
    };
    format!("{:?}\n{:?}\n{line}", batch.keys, batch.options.query_options())
}

#[test]
fn requests_and_answers_keep_the_contract() {
    golden::check("requests.txt", outcome);
}
