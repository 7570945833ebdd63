//! How much of a new version may be brought into memory before it serves, without pushing out what is served.
//!
//! Linux counts the cached pages of mapped files as available: they can be dropped. They are what is served, so what is
//! mapped is taken off, that of all processes: several nodes may share a machine. The same holds in each memory-limited
//! control group (v2) around this process.

use std::{fs, path::Path};

/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// Of one machine or control group, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    /// What could be had, caches dropped.
    available: u64,
    /// Cached pages that processes have mapped.
    mapped: u64,
}

/// How many bytes may be brought in, at most `wanted`; 0 where nobody knows how much memory there is.
pub(super) fn budget(wanted: u64) -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let groups = Path::new(own).ancestors().filter_map(|group| {
        let read = |name: &str| fs::read_to_string(Path::new(GROUPS).join(group).join(name)).ok();
        of_group(&read("memory.max")?, &read("memory.current")?, &read("memory.stat")?)
    });
    machine.map_or(0, |machine| within(wanted, std::iter::once(machine).chain(groups)))
}

/// The smallest room of all.
fn within(wanted: u64, memories: impl Iterator<Item = Memory>) -> u64 {
    memories.map(|memory| memory.available.saturating_sub(memory.mapped)).fold(wanted, u64::min)
}

/// Of `/proc/meminfo`.
fn of_machine(text: &str) -> Option<Memory> {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
    };
    Some(Memory { available: of("MemAvailable")?, mapped: of("Mapped")? })
}

/// Of a control group; `None` if it has no limit.
fn of_group(max: &str, current: &str, stat: &str) -> Option<Memory> {
    let max: u64 = max.trim().parse().ok()?;
    let current: u64 = current.trim().parse().ok()?;
    let of = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let free = max.saturating_sub(current);
    Some(Memory { available: free.saturating_add(of("file")?), mapped: of("file_mapped")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_stays_in_memory() {
        let meminfo =
            "MemTotal:  16 kB\nMemFree:  2 kB\nMemAvailable:   12 kB\nCached: 9 kB\nMapped:  5 kB\n";
        let machine = of_machine(meminfo).unwrap();
        assert_eq!(machine, Memory { available: 12 << 10, mapped: 5 << 10 });
        assert_eq!(within(u64::MAX, [machine].into_iter()), 7 << 10);
        assert_eq!(within(100, [machine].into_iter()), 100);
        // Of ten thousand, one is free, six are files, four of them mapped.
        let group = of_group("10000\n", "9000\n", "anon 3000\nfile 6000\nfile_mapped 4000\n").unwrap();
        assert_eq!(within(u64::MAX, [machine, group].into_iter()), 3_000);
        let full = of_group("100\n", "100\n", "file 50\nfile_mapped 60\n").unwrap();
        assert_eq!(within(u64::MAX, [full].into_iter()), 0);
        assert_eq!(of_group("max\n", "9000\n", "file 1\nfile_mapped 1\n"), None);
        assert_eq!(of_machine("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn this_machine_says_how_much_there_is() {
        assert_eq!(budget(0), 0);
        assert!(budget(u64::MAX) < u64::MAX);
    }
}
