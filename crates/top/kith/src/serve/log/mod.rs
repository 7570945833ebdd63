//! The log of a serving process: its format, and the thinning of warnings that repeat.

mod thin;

use serde::Deserialize;
use std::{
    fmt::{self, Write},
    io::IsTerminal,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use thin::{RepeatedMessage, Thinner};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter, Layer,
    layer::{Context, SubscriberExt},
    util::SubscriberInitExt,
};

/// The interval at which repeated warnings are looked at.
const LOOK: Duration = Duration::from_secs(5);
/// The target of lines about repeated warnings.
const TARGET: &str = "kith::log";
/// Slow queries are bounded by their own setting, and each line is another query.
const SLOW_QUERIES: &str = "kith::slow_query";
/// The field that marks lines of the audit log, which are bounded too.
const AUDIT: &str = "audit";

/// The format of the lines of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// The flags with which a child process writes the same format.
    pub fn flags(self) -> Vec<String> {
        match self {
            Self::Text => Vec::new(),
            Self::Json => ["--log-format", "json"].map(str::to_owned).to_vec(),
        }
    }
}

/// Sends logs to standard error, filtered by `KITH_LOG`. A second call in the same process, as in tests, keeps the first log.
pub fn begin(format: LogFormat, filter_default: &str) {
    let filter = EnvFilter::try_from_env("KITH_LOG").unwrap_or_else(|_| EnvFilter::new(filter_default));
    let thinner = Arc::new(parking_lot::Mutex::new(Thinner::default()));
    let base = tracing_subscriber::registry().with(filter).with(Thin(Arc::clone(&thinner)));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let begun = match format {
        LogFormat::Text => base.with(lines.with_ansi(std::io::stderr().is_terminal()).compact()).try_init(),
        LogFormat::Json => base
            .with(lines.json().flatten_event(true).with_current_span(false).with_span_list(false))
            .try_init(),
    };
    if begun.is_ok() {
        // Without the thread, repetitions are left out but not counted, which is no reason not to serve.
        let _ = thread::Builder::new().name("kith-log".to_owned()).spawn(move || {
            loop {
                thread::sleep(LOOK);
                let due = thinner.lock().due(Instant::now());
                due.iter().for_each(tell);
            }
        });
    }
}

fn tell(repeated: &RepeatedMessage) {
    let RepeatedMessage { text, times, seconds, is_over } = repeated;
    match is_over {
        false => {
            tracing::warn!(target: TARGET, times, seconds, of = text, "a message goes on being repeated")
        }
        true => tracing::info!(target: TARGET, times, seconds, of = text, "a message is no longer repeated"),
    }
}

/// Leaves out warnings and errors that repeat.
struct Thin(Arc<parking_lot::Mutex<Thinner>>);

impl<S: Subscriber> Layer<S> for Thin {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let is_thinned =
            *metadata.level() <= Level::WARN && ![TARGET, SLOW_QUERIES].contains(&metadata.target());
        if !is_thinned || metadata.fields().field(AUDIT).is_some() {
            return true;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let line = (metadata.file().unwrap_or(metadata.target()), metadata.line().unwrap_or_default());
        self.0.lock().admit(line, &text.whole(), Instant::now())
    }
}

/// The message and the fields of an event.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    fn whole(self) -> String {
        self.message + &self.fields
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
