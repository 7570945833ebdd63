//! The commands of each area: their forms and effects. `docs/testing.md` lists them too, and the tests compare both.

type Language = &'static [(&'static str, &'static str)];

/// The language of scenarios about the replicas that a query asks.
pub const ROUTING: Language = &[
    ("group GROUP: NODE[PARTITIONS] …", "a replica group, and which of its nodes owns what"),
    ("zone NAME: NODES", "the failure domain of nodes"),
    ("nodes of GROUP: NODES", "a replica group whose partitions are still to be placed"),
    ("place N partitions", "places them in all groups"),
    (
        "ring of NODES, replicas N",
        "NODES lists the owners of partitions 0, 1, 2 … clockwise around the ring; the other replicas of a partition lie on the next distinct nodes",
    ),
    ("policy NAME", "the replica policy; by default `least-loaded`"),
    ("groups N", "how many groups may take part; by default 1"),
    ("caller in ZONE", "the zone of the process that asks"),
    ("NODE owes N keys in N requests", "the requests that a node has not answered yet"),
    ("NODE takes TIME per key", "how fast a node answers"),
    ("NODE loses its connection", "a request ends with a connection error"),
    ("NODE times out", "a request is not answered in time"),
    ("NODE answers", "a request is answered"),
    ("NODE answers its probe", "a probe is answered"),
    ("NODE fails its probe", "a probe is not answered"),
    ("at TIME", "time passes"),
    ("probes", "the nodes to be probed now"),
    ("NODE lacks PARTITIONS", "the files of these partitions are damaged on that node"),
    (
        "store NAME, copies N, without NODES",
        "a store in only N groups; `without`: nodes that lack its version",
    ),
    ("GROUP is taken out", "a group takes no reads"),
    ("GROUP serves again", "the group takes reads again"),
    (
        "ask PARTITIONS, of STORE, times N",
        "a fan-out with one key in each partition; with `times`, many of them",
    ),
];

/// The outcome of a query.
pub const EXECUTION: Language = &[
    ("group GROUP: NODE[PARTITIONS] …", "a replica group, and which of its nodes owns what"),
    ("no budget for hedges", "late requests are not hedged"),
    ("no budget for retries", "failed requests are not retried"),
    (
        "ask PARTITIONS, partial, early, sum, retries N, deadline TIME, hedge after TIME",
        "a fan-out with one key in each partition, over the first group; all clauses may be left out. `partial`: a partial answer is accepted; `early`: the first positive answer ends it; `sum`: answers are sums, so no key may be answered by two requests",
    ),
    ("REQUEST answers", "all keys of the request that are still unanswered are answered"),
    (
        "REQUEST answers, except PARTITIONS REASON",
        "the same, but the keys in these partitions fail for this reason",
    ),
    ("REQUEST answers N keys", "the first N of its unanswered keys are answered; the rest will follow"),
    ("REQUEST fails: REASON", "all of its unanswered keys fail"),
    ("NODE seems down", "the health check has found that the node is down"),
    ("NODE is back", "the node is up again"),
    ("at TIME", "time passes, and timers fire when they are due"),
    (
        "stand still until TIME",
        "the asking process does not run until then (as under `SIGSTOP`); then all timers fire at once",
    ),
    ("enough", "the answers so far settle the query"),
    ("the caller leaves", "nobody waits for the answer any more"),
];
