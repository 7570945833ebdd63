//! Golden tests: request lines, the calls of the service that they cause, and the lines of the answers.

use crate::{
    ask,
    failure::{ErrorReport, Failure},
    fake::Fake,
    golden, output,
    read::Shapes,
    table,
};
use futures::FutureExt;
use kith_query::{
    Operation,
    line::{BatchFields, Line, StoreLine},
};

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

/// The answer of an example as JSON and as text for people.
fn of_example(line: &str) -> String {
    match kith_query::line::parse(line) {
        Ok(Line::Graph(question)) => {
            let answer =
                ask::answer(&Fake, &question).now_or_never().expect("the fake never waits").expect(line);
            format!("{}\n{}", output::json_line(&answer), table::answer::render_for(&answer, None, None))
        }
        Ok(other) => panic!("{other:?} asks no graph"),
        Err(failure) => output::json_line(&ErrorReport::from(Failure::from(failure))),
    }
}

/// An operation that is added is in this page by its examples, and in the help by its name.
#[test]
fn every_operation_is_answered_and_its_name_is_in_the_help() {
    let head =
        "# The examples of all operations, and the help that has their names. BLESS=1 rewrites this page.";
    let unknown =
        [r#"{"op":"reticulate","graph":"v","id":1}"#, r#"{"op":"network-size","graph":"v","id":1}"#];
    let examples = Operation::examples().into_iter().flat_map(|(_, examples)| examples);
    let inputs = [head].into_iter().chain(unknown).chain(examples.map(|example| example.line));
    golden::check_inputs("operations.txt", &inputs.collect::<Vec<_>>(), of_example);
}
