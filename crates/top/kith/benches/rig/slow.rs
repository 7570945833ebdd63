//! A slow process: one that the system stops again and again.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// A process that is stopped and continued in turn, until this is dropped.
pub struct Slow {
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Slow {
    /// Stops the process for `stopped`, lets it run for `running`, and repeats this.
    pub fn start(pid: u32, stopped: Duration, running: Duration) -> Self {
        let pid = Pid::from_raw(pid.cast_signed()).expect("0 is nobody's");
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for (signal, pause) in [(Signal::STOP, stopped), (Signal::CONT, running)] {
                    kill_process(pid, signal).expect("the process lives");
                    thread::sleep(pause);
                }
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread continues the process before it ends, so the process runs again.
            let _ = thread.join();
        }
    }
}
