//! The operations of graphs as subcommands. Besides those of [`Operation`], there are short forms of some of them.

use crate::{CommonPlan, CommonQuery, NetworkQuery, NetworkReturn, Operation, Want};
use clap::{Args, Subcommand};

/// The operations of `kith graph`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum GraphOperation {
    #[command(flatten)]
    Operation(Operation),
    /// Only the sizes of `network`
    NetworkSize(Member),
    /// Whether two members have anything in common: a connection of any edge type, or an entity of any kind
    HasCommon(HasCommon),
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct Member {
    /// The member
    id: u64,
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct HasCommon {
    /// One member
    id: u64,
    /// The other member
    to: u64,
    /// Look only at this edge type or entity kind [default: at every one; with --edge-type, at that one]
    #[arg(long)]
    kind: Option<String>,
    /// How to find out
    #[arg(long, value_enum, default_value_t)]
    plan: CommonPlan,
}

/// Operations of graphs that are the subcommands of one command.
pub trait Operations: Subcommand + Into<Operation> {
    /// Whether the operations follow edges, so that the options include the edge type and the direction.
    const FOLLOWS_EDGES: bool;
    /// The names of short forms, each with the name of the operation after which help lists it.
    const SHORT_FORMS: &'static [(&'static str, &'static str)] = &[];
}

impl Operations for GraphOperation {
    const FOLLOWS_EDGES: bool = true;
    const SHORT_FORMS: &'static [(&'static str, &'static str)] =
        &[("network-size", "network"), ("has-common", "common")];
}

impl From<GraphOperation> for Operation {
    fn from(operation: GraphOperation) -> Self {
        match operation {
            GraphOperation::Operation(operation) => operation,
            GraphOperation::NetworkSize(Member { id }) => {
                NetworkQuery { id, returns: NetworkReturn::Size }.into()
            }
            GraphOperation::HasCommon(HasCommon { id, to, kind, plan }) => {
                CommonQuery { id, to, kind, returns: Want::Exists, plan }.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::ReadCommand;
    use clap::Command;

    #[test]
    fn help_lists_each_operation_with_its_description_and_short_forms_beside_what_they_shorten() {
        // Arguments before the subcommands count in their order, as in `kith explain`.
        let command = Command::new("explain").arg(clap::arg!(--first <A>)).arg(clap::arg!(--second <B>));
        let command = ReadCommand::<GraphOperation>::augment_subcommands(command);
        let help = command.disable_help_subcommand(true).render_help().to_string();
        let listed: Vec<(&str, &str)> = help
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split_once("  "))
            .map(|(name, about)| (name.trim(), about.trim()))
            .filter(|(name, _)| !name.is_empty() && !name.starts_with('-'))
            .collect();
        let names: Vec<&str> = listed.iter().map(|(name, _)| *name).collect();
        let followed = |name: &str, next: &str| names.windows(2).any(|pair| pair == [name, next]);
        assert!(followed("network", "network-size") && followed("common", "has-common"), "{help}");
        assert!(listed.contains(&("connections", "The members that a member is connected to")), "{help}");
        assert!(listed.contains(&("degree", "How many connections members have")), "{help}");
        assert!(!names.contains(&"object-get"), "it has a command of its own: {help}");
    }

    #[test]
    fn usage_names_arguments_in_capitals() {
        let mut command = ReadCommand::<GraphOperation>::augment_subcommands(Command::new("graph"));
        for operation in command.get_subcommands_mut() {
            let usage = operation.render_usage().to_string();
            let arguments = usage.split('<').skip(1).filter_map(|rest| rest.split('>').next());
            for argument in arguments {
                assert_eq!(argument, argument.to_uppercase(), "{usage}");
            }
        }
    }
}
