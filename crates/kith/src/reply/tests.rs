//! Golden: request lines, what is asked of the service for them, and the lines that answer.

use super::fake::Fake;
use crate::{
    ask,
    failure::ErrorReport,
    golden, output,
    read::Shapes,
    request::{self, Batch, Request},
};
use futures::FutureExt;

fn outcome(line: &str) -> String {
    let question = match request::parse(line) {
        Ok(Request::Graph(question)) => question,
        Ok(Request::Batch(batch)) => return of_batch(&batch),
        Ok(Request::Compute(_) | Request::Aggregate(_)) => panic!("the fake holds no records"),
        Err(failure) => return output::json_line(&ErrorReport::from(failure)),
    };
    let query = question.query();
    let answer = ask::answer(&Fake, &question).now_or_never().expect("the fake never waits");
    let answer = match answer {
        Ok(answer) => output::json_line(&answer),
        Err(error) => output::json_line(&ErrorReport::of(&error)),
    };
    format!(
        "{:?} of {:?}, edge type {:?}, direction {:?}\n{:?}\n{answer}",
        query.operand,
        question.options.graph,
        query.edge_type,
        query.direction,
        question.options.query_options(),
    )
}

fn of_batch(batch: &Batch) -> String {
    let shapes = Shapes::default();
    let line = match shapes.read(&Fake, batch).now_or_never().expect("the fake never waits") {
        Ok(answer) => output::json_line(&answer),
        Err(error) => output::json_line(&ErrorReport::of(&error)),
    };
    format!("{:?}\n{:?}\n{line}", batch.asked, batch.options.query_options())
}

#[test]
fn requests_and_answers_keep_the_contract() {
    golden::check("requests.txt", outcome);
}
