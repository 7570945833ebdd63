//! The commands of each area: their forms, and what they do. `docs/testing.md` lists them too, and the tests compare.

type Language = &'static [(&'static str, &'static str)];

/// Which replicas a query asks.
pub const ROUTING: Language = &[
    ("group GROUP: NODE[PARTITIONS] …", "a replica group, and which of its nodes owns what"),
    ("zone NAME: NODES", "the failure domain of nodes"),
    ("nodes of GROUP: NODES", "a replica group whose partitions are still to be placed"),
    ("place N partitions", "places them in all groups"),
    (
        "ring of NODES, replicas N",
        "the owner of each partition clockwise; replicas lie on the next distinct nodes",
    ),
    ("policy NAME", "the replica policy; `least-loaded` unless said"),
    ("groups N", "how many groups may take part; 1 unless said"),
    ("caller in ZONE", "the zone of the process that asks"),
    ("NODE owes N keys in N requests", "what was asked of a node and is not answered yet"),
    ("NODE takes TIME per key", "how fast a node answers"),
    ("NODE loses its connection", "a request ends with a connection error"),
    ("NODE times out", "a request is not answered in time"),
    ("NODE answers", "a request is answered"),
    ("NODE answers its probe", "a probe is answered"),
    ("NODE fails its probe", "a probe is not answered"),
    ("at TIME", "time passes"),
    ("probes", "the nodes to be probed now"),
    ("NODE lacks PARTITIONS", "their files on that node are damaged"),
    ("store NAME, copies N, without NODES", "a store in N groups only; nodes that lack its version"),
    ("GROUP is taken out", "a group takes no reads"),
    ("GROUP serves again", "it does again"),
    (
        "ask PARTITIONS, of STORE, times N",
        "a fan-out with one key in each partition; with `times`, many of them",
    ),
];

/// What becomes of a query.
pub const EXECUTION: Language = &[
    ("group GROUP: NODE[PARTITIONS] …", "a replica group, and which of its nodes owns what"),
    ("no budget for hedges", "nothing may be asked twice because it is late"),
    ("no budget for retries", "nothing may be asked twice because it failed"),
    (
        "ask PARTITIONS, partial, early, sum, retries N, deadline TIME, hedge after TIME",
        "a fan-out with one key in each partition, over the first group; all clauses may be left out",
    ),
    ("REQUEST answers", "for all keys that it still owes"),
    ("REQUEST answers, except PARTITIONS REASON", "for all but these"),
    ("REQUEST answers N keys", "the first N that it still owes; more is to come"),
    ("REQUEST fails: REASON", "for all keys that it still owes"),
    ("NODE seems down", "health has found that the node is down"),
    ("NODE is back", "it is up again"),
    ("at TIME", "time passes, and timers fire when they are due"),
    (
        "stand still until TIME",
        "the asking process gets no processor meanwhile; then all timers fire at once",
    ),
    ("enough", "the answers so far settle the query"),
    ("the caller leaves", "nobody waits for the answer any more"),
];

/// How a cluster changes its shape.
pub const REBALANCE: Language = &[
    ("group GROUP: NODE[PARTITIONS] …", "a replica group, and which of its nodes owns what"),
    ("zone NAME: NODES", "the failure domain of nodes, new ones among them"),
    (
        "ring of NODES, replicas N",
        "the owner of each partition clockwise; replicas lie on the next distinct nodes",
    ),
    (
        "store NAME, bytes N, copies N, agree N, without NODES",
        "a store of N bytes per partition; copies, answers that must agree, and nodes that lack it",
    ),
    (
        "plan SHAPE, batch N, dead NODES",
        "plans a change: `add NODES to GROUP`, `remove NODES`, `drain NODES`, `replace NODE by NODE`, `add GROUP of NODES`, `take out GROUP`, `restore GROUP` or `even out`",
    ),
    (
        "begin, grace TIME, push STORE, left N",
        "begins the plan; a push may be running, or partitions of the last rebalance be left to free",
    ),
    ("COPY is copied", "the stealer has it, verified and opened"),
    ("all is copied", "every copy that runs has ended well"),
    ("COPY fails: REASON", "`connection`, `donor` or `stealer`: whose fault it is"),
    ("the table is written", "the write has succeeded"),
    ("the table is written, unheard", "it has, but the driver does not get to know"),
    (
        "the write is refused",
        "another table is in force than the driver thinks, or its own write has succeeded before",
    ),
    ("another changes the table", "somebody else writes the next epoch"),
    ("all use EPOCH", "every process that routes has a table of this epoch or a later one"),
    ("NODE freed PARTITION", "the node has removed what it was told to"),
    ("NODE goes down", "the driver sees that a node is down"),
    ("NODE comes back", "and that it is up again"),
    ("at TIME", "time passes"),
    ("the driver restarts", "another router takes over, with what was stored and the table in force"),
    ("continue", "a person says that the reason to stop is gone"),
    ("abort", "a person wants it undone as far as it is not done"),
    ("owners", "the table in force"),
    ("progress", "how far it is"),
];
