//! The resources that a process uses: memory, processor time and descriptors, under the names that Prometheus clients share
//! (`process_…`). The numbers are read from `/proc`, at most once a second.

use kith_types::clock::since_1970;
use parking_lot::Mutex;
use std::{
    fmt::Write,
    fs,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// How long the numbers are used again. Counting thousands of descriptors takes milliseconds of a thread that also answers
/// health checks, and nothing limits how often `/metrics` is read.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The unit of processor time in `/proc`, which Linux has fixed.
const TICKS_PER_SECOND: f64 = 100.0;

/// The resources that the process uses now. A number that cannot be read is `None`, and its metric is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time of the process.
    pub cpu_seconds: Option<f64>,
    /// The part of the processor time that the kernel used for the process.
    pub kernel_cpu_seconds: Option<f64>,
    /// Memory now.
    pub resident_bytes: Option<f64>,
    /// The most memory so far.
    pub peak_bytes: Option<f64>,
    virtual_bytes: Option<f64>,
    threads: Option<f64>,
    open_fds: Option<f64>,
    max_fds: Option<f64>,
    started: Option<f64>,
}

/// Returns the metrics of this process in Prometheus' text format.
pub(super) fn render() -> String {
    of_process().render()
}

/// Returns what this process uses, as of a second ago at most.
pub fn of_process() -> Usage {
    static LAST: Mutex<Option<(Instant, Usage)>> = Mutex::new(None);
    let mut last = LAST.lock();
    if let Some((_, usage)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH_FOR) {
        return usage.clone();
    }
    let usage = usage();
    *last = Some((Instant::now(), usage.clone()));
    usage
}

fn usage() -> Usage {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let kib = |name| number_after(&status, name).map(|kib| kib * 1024.0);
    Usage {
        cpu_seconds: Some(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9),
        kernel_cpu_seconds: kernel_ticks(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
            .map(|ticks| ticks / TICKS_PER_SECOND),
        resident_bytes: kib("VmRSS:"),
        peak_bytes: kib("VmHWM:"),
        virtual_bytes: kib("VmSize:"),
        threads: number_after(&status, "Threads:"),
        // The descriptor of the listing itself is one of them.
        open_fds: fs::read_dir("/proc/self/fd").ok().map(|all| all.count().saturating_sub(1) as f64),
        max_fds: number_after(&limits, "Max open files"),
        started: Some(started()),
    }
}

/// When the process started, in seconds since 1970: the first call of this function, which installs the recorder.
pub(super) fn started() -> f64 {
    static STARTED: OnceLock<f64> = OnceLock::new();
    *STARTED.get_or_init(|| since_1970().as_secs_f64())
}

/// The processor time that the kernel used, in ticks: the 15th field of `/proc/self/stat`. The second is the program's name
/// in parentheses, which may contain anything.
fn kernel_ticks(stat: &str) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(12)?.parse().ok()
}

/// The number that follows `name` at the start of a line.
fn number_after(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

impl Usage {
    fn render(&self) -> String {
        let mut text = String::new();
        let metrics = [
            (
                "process_cpu_seconds_total",
                "counter",
                "processor time that this process has used",
                self.cpu_seconds,
            ),
            ("process_resident_memory_bytes", "gauge", "memory of this process", self.resident_bytes),
            ("process_virtual_memory_bytes", "gauge", "address space of this process", self.virtual_bytes),
            ("process_threads", "gauge", "threads of this process", self.threads),
            ("process_open_fds", "gauge", "open file descriptors", self.open_fds),
            ("process_max_fds", "gauge", "limit of open file descriptors", self.max_fds),
            (
                "process_start_time_seconds",
                "gauge",
                "when the process started, in seconds since 1970",
                self.started,
            ),
        ];
        for (name, kind, help, value) in metrics {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let before = usage();
        let file = tempfile::tempfile().unwrap();
        let after = usage();
        let grown = |of: fn(&Usage) -> Option<f64>| of(&after).unwrap() - of(&before).unwrap();
        assert!(0.0 <= grown(|usage| usage.cpu_seconds) && 0.0 <= grown(|usage| usage.kernel_cpu_seconds));
        assert!(after.resident_bytes <= after.peak_bytes);
        assert!(after.resident_bytes.unwrap() > 1e5 && after.virtual_bytes >= after.resident_bytes);
        assert!(after.threads.unwrap() >= 1.0 && after.open_fds.unwrap() >= 1.0);
        assert!(after.open_fds <= after.max_fds);
        drop(file);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let text = Usage { cpu_seconds: Some(1.5), ..Usage::default() }.render();
        assert!(
            text.ends_with("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 1.5\n\n")
        );
        assert_eq!(text.matches("# HELP").count(), 1);
        assert_eq!(number_after("VmRSS:\t 12 kB\nMax open files  unlimited", "Max open files"), None);
        assert_eq!(number_after("VmRSS:\t 12 kB", "VmRSS:"), Some(12.0));
        assert_eq!(kernel_ticks("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13"), Some(12.0));
    }
}
