//! Keeps the logs of `kith dev` short. Each process appends to its own log, which it has open all the time. So a log that is
//! long is copied to `FILE.1`, and then emptied. Lines that are written in the instant between are lost.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// A log is copied and emptied when it is longer than this. So a process has at most about twice as much.
const BYTES_MAX: u64 = 16 << 20;
/// The interval between looks at the logs.
const LOOK: Duration = Duration::from_secs(5);

/// Keeps these logs short until `stop` is cancelled.
pub(super) async fn keep_short(logs: Vec<PathBuf>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        let logs = logs.clone();
        let shortened =
            tokio::task::spawn_blocking(move || logs.iter().try_for_each(|log| shorten(log, BYTES_MAX)));
        if let Ok(Err(error)) = shortened.await {
            tracing::warn!(%error, "a log cannot be shortened");
        }
    }
}

/// Moves the content of a log aside if it is longer than `bytes_max`.
fn shorten(log: &Path, bytes_max: u64) -> io::Result<()> {
    match fs::metadata(log) {
        Ok(metadata) if bytes_max < metadata.len() => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut aside = log.as_os_str().to_owned();
    aside.push(".1");
    // If the disk is full, the log is emptied all the same.
    let copied = fs::copy(log, aside).map(drop);
    fs::File::options().write(true).open(log)?.set_len(0)?;
    copied
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_long_log_is_put_aside_and_its_process_goes_on_writing() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("node-000.log");
        shorten(&log, 10).unwrap();
        let mut open = fs::File::options().create(true).append(true).open(&log).unwrap();
        for round in 0..3 {
            write!(open, "short {round}").unwrap();
            shorten(&log, 10).unwrap();
            assert_eq!(fs::read_to_string(&log).unwrap(), format!("short {round}"));
            write!(open, " and long").unwrap();
            shorten(&log, 10).unwrap();
            assert_eq!(fs::read_to_string(&log).unwrap(), "");
            let aside = fs::read_to_string(folder.path().join("node-000.log.1")).unwrap();
            assert_eq!(aside, format!("short {round} and long"));
        }
    }
}
