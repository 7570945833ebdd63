//! The resources that this process has used, from `/proc`.

use std::{fs, time::Duration};

/// The number of clock ticks per second in `/proc/*/stat`, which the kernel's interface fixes.
const TICKS_PER_SECOND: f64 = 100.0;

/// The CPU time of all threads so far; `None` if there is no `/proc`.
pub fn cpu() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may contain spaces.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(Duration::from_secs_f64(ticks / TICKS_PER_SECOND))
}

/// The peak of resident memory in bytes.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Resets the peak to the memory that is resident now. Without the necessary permission it has no effect.
pub fn reset_peak_memory() {
    // 5: the peak, see proc(5).
    let _ = fs::write("/proc/self/clear_refs", "5");
}
