//! The query record: every query as a line that `kith run` and `kith bench graph` can replay.

use serde_json::Value;
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::Duration,
};

/// The most lines that may wait for the disk. Further lines are dropped and counted, because the record must not slow
/// queries.
const QUEUE: usize = 16_384;
/// A line reaches the file within this time.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);

/// Appends queries to a file from a thread of its own.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    lines: SyncSender<String>,
}

impl Recorder {
    /// Opens `path`, to which lines are appended.
    ///
    /// # Errors
    /// The file cannot be opened, or the system has no thread for the writer.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = fs::File::options().create(true).append(true).open(path)?;
        let (lines, queue) = sync_channel(QUEUE);
        thread::Builder::new()
            .name("kith-record".into())
            .spawn(move || write_lines(&queue, BufWriter::new(file)))?;
        Ok(Self { lines })
    }

    /// Records one query.
    pub fn note(&self, query: &Value) {
        if self.lines.try_send(query.to_string()).is_err() {
            metrics::counter!("kith_router_record_dropped_total").increment(1);
        }
    }
}

fn write_lines(queue: &Receiver<String>, mut file: BufWriter<fs::File>) {
    use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
    loop {
        let written = match queue.recv_timeout(FLUSH_INTERVAL) {
            Ok(line) => writeln!(file, "{line}"),
            Err(Timeout) => file.flush(),
            Err(Disconnected) => {
                let _ = file.flush();
                return;
            }
        };
        if let Err(error) = written {
            tracing::error!(%error, "the query record cannot be written");
        }
    }
}
