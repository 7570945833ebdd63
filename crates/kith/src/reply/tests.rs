//! Golden: request lines, what is asked of the service for them, and the lines that answer.

use super::fake::Fake;
use crate::{ask, failure::ErrorReport, golden, output, request};
use futures::FutureExt;

fn outcome(line: &str) -> String {
    let question = match request::parse(line) {
        Ok(question) => question,
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

#[test]
fn requests_and_answers_keep_the_contract() {
    golden::check("requests.txt", outcome);
}
