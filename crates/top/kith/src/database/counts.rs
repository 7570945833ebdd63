//! The counters of a database process, which start at 0 before anything is counted.

use kith_cluster::counts::{self, LabelledCounter, zero};
use kith_database::DatabaseService;

const LABELLED_OF_DATABASES: [LabelledCounter; 2] = [
    LabelledCounter { name: "kith_database_calls_total", label: "call", values: DatabaseService::CALLS },
    LabelledCounter { name: "kith_database_faults_total", label: "code", values: DatabaseService::FAULTS },
];

/// Starts all counters of a database process at 0.
pub(super) fn of_database() {
    counts::of_process();
    zero(&[], &LABELLED_OF_DATABASES);
}
