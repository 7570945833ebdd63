//! Decides how much of a new version may be read into memory before it serves, without evicting what is served.
//!
//! Linux counts cached pages of mapped files as available, because they can be dropped. These pages are what is served, so
//! mapped pages are subtracted. The mapped pages of all processes are, because several nodes may share a machine. The same
//! applies to each control group with a memory limit around this process, in both versions of control groups.

use std::{fs, path::Path};

/// The folders of control groups: of all groups in version 2, of the memory groups in version 1.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"];
/// The names of the limit, the usage, the file pages and the mapped pages in the two versions.
const NAMES: [[&str; 4]; 2] = [
    ["memory.max", "memory.current", "file", "file_mapped"],
    ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_mapped_file"],
];
/// The name of the controller of the group in a line of `/proc/self/cgroup`, in each version: `0::/path` and
/// `4:memory:/path`.
const CONTROLLERS: [&str; 2] = ["", "memory"];
/// A group of version 1 without a limit reports a limit of about this size.
const UNLIMITED: u64 = 1 << 62;

/// The memory of a machine or control group, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Memory {
    /// The memory that could be allocated after dropping caches.
    available: u64,
    /// Cached pages that processes have mapped.
    mapped: u64,
}

/// Returns how many bytes may be read into memory, at most `wanted`; 0 if the size of the memory is unknown.
pub(crate) fn budget(wanted: u64) -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = GROUPS.iter().zip(NAMES).zip(CONTROLLERS).flat_map(|((root, names), controller)| {
        let group = group_of(&own, controller).unwrap_or_default();
        let around =
            Path::new(group).ancestors().map(|group| Path::new(root).join(group)).collect::<Vec<_>>();
        around.into_iter().filter_map(move |group| {
            let read = |name: &str| fs::read_to_string(group.join(name)).ok();
            let [max, current, file, mapped] = names;
            of_group(&read(max)?, &read(current)?, &read("memory.stat")?, [file, mapped])
        })
    });
    machine.map_or(0, |machine| within(wanted, std::iter::once(machine).chain(groups)))
}

/// Returns the smallest room among `memories`, at most `wanted`.
fn within(wanted: u64, memories: impl Iterator<Item = Memory>) -> u64 {
    memories.map(|memory| memory.available.saturating_sub(memory.mapped)).fold(wanted, u64::min)
}

/// Parses `/proc/meminfo`.
fn of_machine(text: &str) -> Option<Memory> {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
    };
    Some(Memory { available: of("MemAvailable")?, mapped: of("Mapped")? })
}

/// Returns the path of the process's group, relative to its root.
fn group_of<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    let mut named = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(":/"));
    named.find(|(controllers, _)| controllers.split(',').any(|it| it == controller)).map(|(_, path)| path)
}

/// Returns the memory of a control group; `None` if it has no limit. `names` are the names of cached and of mapped pages.
fn of_group(max: &str, current: &str, stat: &str, names: [&str; 2]) -> Option<Memory> {
    let max: u64 = max.trim().parse().ok().filter(|max| *max < UNLIMITED)?;
    let current: u64 = current.trim().parse().ok()?;
    let of = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let free = max.saturating_sub(current);
    let [file, mapped] = names;
    Some(Memory { available: free.saturating_add(of(file)?), mapped: of(mapped)? })
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
        // Of ten thousand bytes, one thousand are free and six thousand are files, of which four thousand are mapped.
        let [_, _, file, mapped] = NAMES[0];
        let stat = "anon 3000\nfile 6000\nfile_mapped 4000\n";
        let group = of_group("10000\n", "9000\n", stat, [file, mapped]).unwrap();
        assert_eq!(within(u64::MAX, [machine, group].into_iter()), 3_000);
        let full = of_group("100\n", "100\n", "file 50\nfile_mapped 60\n", [file, mapped]).unwrap();
        assert_eq!(within(u64::MAX, [full].into_iter()), 0);
        assert_eq!(of_group("max\n", "9000\n", "file 1\nfile_mapped 1\n", [file, mapped]), None);
        let [_, _, file, mapped] = NAMES[1];
        let stat = "cache 1\nmapped_file 1\ntotal_cache 600\ntotal_mapped_file 400\n";
        let older = of_group("1000\n", "900\n", stat, [file, mapped]).unwrap();
        assert_eq!(older, Memory { available: 700, mapped: 400 });
        assert_eq!(of_group("9223372036854771712\n", "900\n", stat, [file, mapped]), None);
        let groups = "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/c\n";
        assert_eq!([group_of(groups, "memory"), group_of(groups, "")], [Some("a/b"), Some("c")]);
        assert_eq!(group_of("4:cpu:/a\n", "memory"), None);
        assert_eq!(of_machine("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn this_machine_says_how_much_there_is() {
        assert_eq!(budget(0), 0);
        assert!(budget(u64::MAX) < u64::MAX);
    }
}
