//! Programs: what clients do, one step after the other, made of a seed.

/// Clusters that share the bucket.
pub const CLUSTERS: usize = 2;
/// Stores of each; they have the same names in all clusters.
pub const STORES: usize = 4;
/// Routers of each cluster, and nodes.
pub const ROUTERS: usize = 2;
pub const NODES: usize = 2;

/// Numbers that follow from a seed: splitmix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    pub fn is_one_of(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// Who pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// `kith store push`, a process of its own.
    Command,
    /// A program that uploads and asks a router by itself.
    Program,
}

/// The fate of a push that begins. Times are milliseconds after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is let end.
    Ends,
    /// Its client is killed, or forgets it.
    Killed(u64),
    /// Its command is interrupted: Ctrl-C.
    Interrupted(u64),
    /// Somebody else cancels it.
    Cancelled(u64),
}

/// One thing that a client does.
#[derive(Clone, Debug)]
pub enum Op {
    Push {
        hands: Hands,
        /// Changes of the version that is served.
        delta: bool,
        from_peers: bool,
        fate: Fate,
    },
    /// Two pushes at once.
    Race {
        hands: [Hands; 2],
        /// Of one number, and then perhaps of the same rows too: a job that runs twice.
        same_version: bool,
        same_rows: bool,
    },
    /// One push that is handed over twice, at once to two routers or one after the other.
    Repeat {
        at_once: bool,
    },
    /// An upload that nobody hands over; `whole`: with its manifest.
    Upload {
        whole: bool,
    },
    /// A push of what the other cluster has.
    Foreign,
    /// Ends whatever push is under way.
    Cancel,
    /// Versions are chosen from those that the store has.
    Swap {
        which: usize,
        force: bool,
    },
    Rollback {
        which: Option<usize>,
        force: bool,
    },
    Hold {
        which: usize,
        release: bool,
    },
    Block {
        which: usize,
        unblock: bool,
    },
    Retain(u32),
    /// And thawed again.
    Freeze,
    Drop,
    Create,
    Read,
    KillRouter(usize),
    KillNode(usize),
    /// A connection of the bucket breaks after so many bytes.
    Cut(u64),
}

impl Op {
    /// The name under which it is counted.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Push { fate: Fate::Killed(_), .. } => "push, killed",
            Op::Push { fate: Fate::Interrupted(_), .. } => "push, interrupted",
            Op::Push { fate: Fate::Cancelled(_), .. } => "push, cancelled",
            Op::Push { delta: true, .. } => "push of changes",
            Op::Push { .. } => "push",
            Op::Race { same_rows: true, .. } => "race of two pushes of one number and rows",
            Op::Race { same_version: true, .. } => "race of two pushes of one number",
            Op::Race { .. } => "race of two pushes",
            Op::Repeat { .. } => "push, repeated",
            Op::Upload { .. } => "upload, abandoned",
            Op::Foreign => "push of another cluster's version",
            Op::Cancel => "cancel",
            Op::Swap { .. } => "swap",
            Op::Rollback { .. } => "rollback",
            Op::Hold { .. } => "hold, release",
            Op::Block { .. } => "block, unblock",
            Op::Retain(_) => "retain",
            Op::Freeze => "freeze and thaw",
            Op::Drop => "drop",
            Op::Create => "create",
            Op::Read => "read",
            Op::KillRouter(_) => "router killed",
            Op::KillNode(_) => "node killed",
            Op::Cut(_) => "bucket's connection cut",
        }
    }
}

/// An operation, and where.
#[derive(Clone, Debug)]
pub struct Step {
    pub cluster: usize,
    pub store: usize,
    pub op: Op,
    /// For whatever else must be chosen.
    pub seed: u64,
}

/// Makes an operation of a kind.
type Make = fn(&mut Dice) -> Op;

/// How often each kind of operation comes, of the sum of all.
const WEIGHTS: [(u64, Make); 17] = [
    (300, push),
    (60, race),
    (30, |dice| Op::Repeat { at_once: dice.is_one_of(2) }),
    (25, |dice| Op::Upload { whole: dice.is_one_of(2) }),
    (10, |_| Op::Foreign),
    (25, |_| Op::Cancel),
    (80, |dice| Op::Swap { which: index(dice), force: dice.is_one_of(2) }),
    (80, |dice| Op::Rollback { which: dice.is_one_of(2).then(|| index(dice)), force: dice.is_one_of(2) }),
    (45, |dice| Op::Hold { which: index(dice), release: !dice.is_one_of(3) }),
    (35, |dice| Op::Block { which: index(dice), unblock: dice.is_one_of(2) }),
    (30, |dice| Op::Retain(1 + dice.below(3) as u32)),
    (15, |_| Op::Freeze),
    (8, |_| Op::Drop),
    (24, |_| Op::Create),
    (190, |_| Op::Read),
    (15, |dice| {
        if dice.is_one_of(2) {
            Op::KillRouter(dice.below(ROUTERS as u64) as usize)
        } else {
            Op::KillNode(dice.below(NODES as u64) as usize)
        }
    }),
    (10, |dice| Op::Cut(dice.below(20_000))),
];

fn index(dice: &mut Dice) -> usize {
    dice.below(8) as usize
}

fn hands(dice: &mut Dice) -> Hands {
    if dice.is_one_of(4) { Hands::Command } else { Hands::Program }
}

fn push(dice: &mut Dice) -> Op {
    let delta = dice.is_one_of(12);
    let after = dice.below(1_000);
    let fate = match dice.below(10) {
        0 | 1 => Fate::Killed(after),
        2 => Fate::Interrupted(after),
        3 => Fate::Cancelled(after),
        _ => Fate::Ends,
    };
    // A delta is the command's, and so is whom Ctrl-C reaches.
    let is_commands = delta || matches!(fate, Fate::Interrupted(_));
    let hands = if is_commands { Hands::Command } else { hands(dice) };
    Op::Push { hands, delta, from_peers: dice.is_one_of(6), fate }
}

fn race(dice: &mut Dice) -> Op {
    let same_version = dice.is_one_of(2);
    let same_rows = same_version && dice.is_one_of(2);
    Op::Race { hands: [hands(dice), hands(dice)], same_version, same_rows }
}

/// The steps of one client.
pub fn program(seed: u64, steps: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    (0..steps).map(|_| step(&mut dice)).collect()
}

fn step(dice: &mut Dice) -> Step {
    let sum = WEIGHTS.iter().map(|(weight, _)| weight).sum();
    let mut left = dice.below(sum);
    let make = WEIGHTS.iter().find_map(|(weight, make)| match left.checked_sub(*weight) {
        Some(rest) => {
            left = rest;
            None
        }
        None => Some(make),
    });
    Step {
        cluster: dice.below(CLUSTERS as u64) as usize,
        store: dice.below(STORES as u64) as usize,
        op: make.expect("a weight covers it")(dice),
        seed: dice.number(),
    }
}
