//! `kith run`: reads one JSON request per line and writes one JSON answer per line, in the same order, with many in flight.
//!
//! Memory is bounded by the requests in flight, not by the input. Every input line gives one output line, so that the two
//! can be joined by line number. Even an empty line gives one, which is an error.

use crate::{
    ask,
    connect::{self, TargetFlags},
    failure::{ErrorReport, Exit, Failure},
    order::{Order, Turn, may_write},
    output,
    read::Shapes,
    write,
};
use anyhow::Context;
use clap::Args;
use futures::{StreamExt, stream};
use kith_client::Service;
use kith_query::line::Line;
use kith_types::ErrorCode;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};
use tokio::sync::mpsc;

/// The longest request line. It has room for a batch of hundreds of thousands of ids, and bounds the memory of a line.
const LINE_BYTES_MAX: usize = 16 << 20;

#[derive(Clone, Debug, Args)]
pub struct RunFlags {
    /// A file of requests; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Requests in flight at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
}

/// A line of input, or why it is not acceptable.
type Input = Result<Vec<u8>, Failure>;

/// Answers every line.
///
/// # Errors
/// If the input cannot be read, no router can be reached or the output cannot be written.
/// Lines that fail are answered by an error object, and make the exit code 3.
pub async fn run(target: &TargetFlags, flags: RunFlags) -> anyhow::Result<Exit> {
    let input = open(&flags.input)?;
    let service = connect::service(target).await?;
    let concurrency = usize::from(flags.concurrency);
    let (sender, lines) = mpsc::channel(concurrency);
    let reading = thread::spawn(move || read_lines(input, &sender));
    let exit = answer_all(service, lines, concurrency, &mut io::stdout()).await?;
    let read = reading
        .join()
        .map_err(|_| Failure::new(ErrorCode::Internal, "the reading of the input panicked", ""))?;
    read.map_err(|error| unreadable(&flags.input, &error))?;
    Ok(exit)
}

fn open(path: &Path) -> Result<Box<dyn BufRead + Send>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Box::new(BufReader::with_capacity(256 << 10, file)))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot read requests from {}: {error}", path.display());
    Failure::new(
        ErrorCode::InputUnreadable,
        message,
        "check the path and its permissions; `-` reads standard input",
    )
}

/// Sends every line until the input ends or the receiver is dropped.
fn read_lines(mut input: impl BufRead, lines: &mpsc::Sender<Input>) -> io::Result<()> {
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
        if std::mem::take(&mut is_first) {
            let mark = kith_types::byte_order_mark(&line);
            line.drain(..mark.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?);
        }
        if line.is_empty() {
            return Ok(());
        }
        let whole = line.pop_if(|byte| *byte == b'\n').is_some();
        let line = if LINE_BYTES_MAX < line.len() {
            if !whole {
                input.skip_until(b'\n')?;
            }
            Err(Failure::bad_request(format!("the line is longer than {LINE_BYTES_MAX} bytes")))
        } else {
            Ok(line)
        };
        if lines.blocking_send(line).is_err() {
            return Ok(());
        }
    }
}

async fn answer_all(
    service: Arc<dyn Service>,
    lines: mpsc::Receiver<Input>,
    concurrency: usize,
    out: &mut impl Write,
) -> anyhow::Result<Exit> {
    let lines = stream::unfold(lines, async |mut lines| Some((lines.recv().await?, lines)));
    // Each line has its own task, so that answers are decoded and formatted on all cores.
    let shapes = Arc::<Shapes>::default();
    let mut order = None;
    let answers = lines.map(|line| {
        let request = in_order(line, &mut order);
        tokio::spawn(answer_line(Arc::clone(&service), Arc::clone(&shapes), request))
    });
    let mut ready = std::pin::pin!(answers.buffered(concurrency).ready_chunks(concurrency));
    let mut exit = Exit::Done;
    let mut text = Vec::new();
    while let Some(answers) = ready.next().await {
        text.clear();
        for answer in answers {
            let Answered { line, whole } = answer.context("answer a line")?;
            text.extend_from_slice(line.as_bytes());
            if !whole {
                exit = Exit::Partial;
            }
        }
        out.write_all(&text).and_then(|()| out.flush()).context("write standard output")?;
    }
    Ok(exit)
}

/// A line of output.
struct Answered {
    line: String,
    /// Whether the answer covers all partitions, or all keys.
    whole: bool,
}

/// A line on its way to its answer.
enum Request {
    /// A line that needs no order. Its task parses it.
    Line(Input),
    /// A parsed line that may have to wait for earlier lines.
    Ordered(Box<Line>, Option<Turn>),
}

/// From the first write on, lines are parsed one after the other and get their turns in that order.
fn in_order(line: Input, order: &mut Option<Order>) -> Request {
    let writes = |line: &Vec<u8>| order.is_some() || may_write(line);
    let text = match line {
        Ok(line) if writes(&line) => line,
        line => return Request::Line(line),
    };
    let Ok(Ok(line)) = str::from_utf8(&text).map(kith_query::line::parse) else {
        return Request::Line(Ok(text));
    };
    let order = order.get_or_insert_default();
    let turn = order.turn_of(&line);
    Request::Ordered(Box::new(line), turn)
}

async fn answer_line(service: Arc<dyn Service>, shapes: Arc<Shapes>, request: Request) -> Answered {
    match try_request(&*service, &shapes, request).await {
        Ok(answered) => answered,
        Err(error) => Answered { line: output::json_line(&ErrorReport::of(&error)), whole: false },
    }
}

async fn try_request(service: &dyn Service, shapes: &Shapes, request: Request) -> anyhow::Result<Answered> {
    let (line, turn) = match request {
        Request::Line(line) => {
            let not_text = |_| Failure::bad_request("the line is not UTF-8 text");
            (kith_query::line::parse(&String::from_utf8(line?).map_err(not_text)?)?, None)
        }
        Request::Ordered(line, turn) => (*line, turn),
    };
    let Some(mut turn) = turn else { return try_line(service, shapes, line).await };
    let tickets = turn.wait().await;
    match line {
        Line::Write(line) => {
            let reply = write::write(service, &line).await;
            turn.end_write(reply.as_ref().ok().map(|reply| &reply.ticket));
            Ok(Answered { whole: true, line: output::json_line(&reply?) })
        }
        mut line => {
            if let Line::Graph(question) = &mut line {
                question.options.ticket.extend(tickets);
            }
            let answered = try_line(service, shapes, line).await;
            turn.end_read();
            answered
        }
    }
}

async fn try_line(service: &dyn Service, shapes: &Shapes, line: Line) -> anyhow::Result<Answered> {
    match line {
        Line::Graph(question) => {
            let answer = ask::answer(service, &question).await?;
            Ok(Answered { whole: answer.is_complete(), line: output::json_line(&answer) })
        }
        Line::Batch(batch) => {
            let reply = shapes.read(service, &batch).await?;
            Ok(Answered { whole: reply.last.is_complete(), line: output::json_line(&reply) })
        }
        Line::Compute(asked) => {
            let reply = shapes.compute(service, &asked).await?;
            Ok(Answered { whole: reply.last.is_complete(), line: output::json_line(&reply) })
        }
        Line::Write(line) => {
            let reply = write::write(service, &line).await?;
            Ok(Answered { whole: true, line: output::json_line(&reply) })
        }
        Line::Gremlin(line) => {
            let reply = kith_terminal::gremlin::traverse(service, &line).await?;
            Ok(Answered { whole: true, line: output::json_line(&reply) })
        }
        Line::Aggregate(asked) => {
            let reply = shapes.aggregate(service, &asked).await?;
            Ok(Answered { whole: reply.last.is_complete(), line: output::json_line(&reply) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    /// The output of `kith run` for `input`.
    fn run_over(input: &[u8], concurrency: usize) -> (String, Exit) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (sender, lines) = mpsc::channel(concurrency);
        let input = input.to_vec();
        let reading = thread::spawn(move || read_lines(&input[..], &sender));
        let mut out = Vec::new();
        let exit = runtime.block_on(answer_all(Arc::new(Fake), lines, concurrency, &mut out)).unwrap();
        reading.join().unwrap().unwrap();
        (String::from_utf8(out).unwrap(), exit)
    }

    #[test]
    fn answers_come_in_the_order_of_the_requests() {
        let ids = (0..2_000).map(|id| id * 7 % 1_999);
        let requests: String = ids
            .clone()
            .map(|id| format!("{{\"op\":\"network\",\"graph\":\"v\",\"id\":{id},\"return\":\"size\"}}\n"))
            .collect();
        let (out, exit) = run_over(requests.as_bytes(), 16);
        let answered: Vec<u64> = out
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_u64().unwrap())
            .collect();
        assert_eq!((answered, exit), (ids.collect(), Exit::Done));
    }

    #[test]
    fn batches_are_answered_key_by_key() {
        let ask = |keys: &str, partial: bool| {
            let line = format!(r#"{{"op":"mget","store":"people","keys":{keys},"partial":{partial}}}"#);
            let (out, exit) = run_over(line.as_bytes(), 1);
            (serde_json::from_str::<serde_json::Value>(&out).unwrap(), exit)
        };
        let (answer, exit) = ask(r#"["a","none","a"]"#, false);
        let states: Vec<&str> =
            answer["results"].as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap()).collect();
        assert_eq!((states, exit), (vec!["FOUND", "ABSENT", "FOUND"], Exit::Done));
        assert_eq!((&answer["footer"]["found"], &answer["footer"]["versions"][0]), (&2.into(), &1.into()));
        let (lost, exit) = ask(r#"["lost"]"#, true);
        assert_eq!((&lost["results"][0]["state"], exit), (&"UNANSWERED".into(), Exit::Partial));
        let (none, exit) = ask("[]", false);
        assert_eq!((none["results"].as_array().map(Vec::len), exit), (Some(0), Exit::Done));
        assert_eq!(ask("[1]", false).0["error"]["code"], "wrong_key_type");
        assert_eq!(ask(r#""a""#, false).0["error"]["code"], "bad_request");
    }

    #[test]
    fn every_line_is_answered_and_failures_show_in_the_exit_code() {
        let good = r#"{"op":"connections","graph":"v","id":1}"#;
        let input = format!("{good}\n\n\u{0}\n{good}\r\n{good}");
        let (out, exit) = run_over(input.as_bytes(), 2);
        let kinds: Vec<bool> = out.lines().map(|line| line.starts_with(r#"{"ids":"#)).collect();
        assert_eq!((kinds, exit), (vec![true, false, false, true, true], Exit::Partial));
        assert_eq!(run_over(b"", 2), (String::new(), Exit::Done));
        let marked = format!("\u{feff}{good}\r\n{good}\n");
        let (out, exit) = run_over(marked.as_bytes(), 2);
        assert_eq!((out.matches(r#"{"ids":"#).count(), exit), (2, Exit::Done), "{out}");
    }

    #[test]
    fn broken_bytes_and_endless_lines_are_errors_of_their_line_alone() {
        let mut input = vec![b'x'; LINE_BYTES_MAX + 5];
        input.extend(b"\n\xff\xfe\n{\"op\":\"connections\",\"graph\":\"v\",\"id\":1}\n");
        let (out, exit) = run_over(&input, 2);
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[0].contains("longer than"), "{out}");
        assert!(lines[1].contains("not UTF-8"), "{out}");
        assert!(lines[2].starts_with(r#"{"ids":"#), "{out}");
        assert_eq!((lines.len(), exit), (3, Exit::Partial));
    }
}
