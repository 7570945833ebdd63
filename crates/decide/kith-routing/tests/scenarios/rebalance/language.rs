//! The commands of the area `rebalance`: their forms and effects. `docs/testing.md` lists them too, and the tests compare
//! both.

/// The language of scenarios about a cluster that changes its shape.
pub const REBALANCE: &[(&str, &str)] = &[
    ("group GROUP: NODE[PARTITIONS] …", "a replica group, and which of its nodes owns what"),
    ("zone NAME: NODES", "the failure domain of nodes, including new ones"),
    (
        "ring of NODES, replicas N",
        "NODES lists the owners of partitions 0, 1, 2 … clockwise around the ring; the other replicas of a partition lie on the next distinct nodes",
    ),
    (
        "store NAME, bytes N, copies N, agree N, without NODES",
        "a store of N bytes per partition; the number of copies, the number of replicas that must agree on an answer (the read quorum), and the nodes that lack the store",
    ),
    (
        "plan SHAPE, batch N, dead NODES",
        "plans a change: `add NODES to GROUP`, `remove NODES`, `drain NODES`, `replace NODE by NODE`, `add GROUP of NODES`, `take out GROUP`, `restore GROUP` or `even out`",
    ),
    (
        "begin, grace TIME, push STORE, left N",
        "begins the plan; `push`: a push of this store is running; `left`: this many partitions of the last rebalance are still to be freed",
    ),
    ("COPY is copied", "the stealer (the node that receives the partition) has verified and opened the copy"),
    ("all is copied", "every copy under way has succeeded"),
    (
        "COPY fails: REASON",
        "the copy fails; the reason says where the fault lies: `connection`, `donor` or `stealer`",
    ),
    ("the table is written", "the write of the routing table has succeeded"),
    ("the table is written, unheard", "the write has succeeded, but the driver does not learn of it"),
    (
        "the write is refused",
        "the table in force is not the one that the driver expects, perhaps because its own earlier write succeeded",
    ),
    ("another changes the table", "somebody else writes the next epoch"),
    ("all use EPOCH", "every process that routes has a table of this epoch or a later one"),
    ("NODE freed PARTITION", "the node has removed the partition, as the driver asked"),
    ("NODE goes down", "the driver sees that a node is down"),
    ("NODE comes back", "the driver sees that the node is up again"),
    ("at TIME", "time passes"),
    ("the driver restarts", "another router takes over, with what was stored and the table in force"),
    ("continue", "an operator says that the reason for the stop is gone"),
    ("abort", "an operator asks to undo the rebalance, except for its finished batches"),
    ("owners", "prints the table in force"),
    ("progress", "prints how far the rebalance has come"),
];
