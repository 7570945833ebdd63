//! A real `kith dev` and the reference answers, for end-to-end tests.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod cluster;
pub mod disk;
pub mod driver;
pub mod limits;
pub mod line;
pub mod methods;
pub mod offers;
pub mod raw;
pub mod redis;
pub mod reference;
pub mod secured;
pub mod spare;
pub mod stream;
pub mod streams;
pub mod unruly;
pub mod values;
pub mod walks;
pub mod words;

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// Bound on every wait; far above what any of them takes.
pub const TIMEOUT: Duration = Duration::from_secs(90);

/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Waits, not for ever, until something holds.
pub fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    wait_until_or_tell(what, holds, String::new);
}

/// As [`wait_until`]; the panic says what went on if it never holds.
pub fn wait_until_or_tell(what: &str, mut holds: impl FnMut() -> bool, describe: impl Fn() -> String) {
    let held = in_time().any(|()| {
        let holds = holds();
        if !holds {
            thread::sleep(LOOK);
        }
        holds
    });
    assert!(held, "waited too long until {what}\n{}", describe());
}

/// Goes on for as long as one may wait: for tests that bring about themselves what they wait for.
pub fn in_time() -> impl Iterator<Item = ()> {
    let started = Instant::now();
    std::iter::repeat(()).take_while(move |()| started.elapsed() < TIMEOUT)
}

/// The workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The folder of test data that is not part of the project; `None`, said aloud, where it is absent.
pub fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("KITH_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let social = folder.join("social");
    if social.is_dir() {
        Some(social)
    } else {
        eprintln!("skipped: {} is absent; set KITH_DATA to the test data", social.display());
        None
    }
}

/// Whether the long tests were asked for (`make test-full`).
pub fn is_full() -> bool {
    std::env::var_os("KITH_TEST_FULL").is_some()
}
