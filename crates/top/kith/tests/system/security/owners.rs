//! A store's definition is changed by its owner and administrators, and by nobody else.

use super::secured::{SecuredCluster, fill, must, refused, with};
use super::{bearing, rights, token_file};
use std::path::Path;

/// Refuses each command of `bob` on a store of `ada`, and audits that.
fn assert_for_ada_alone(cluster: &SecuredCluster, bob: &Path, commands: &[&[&str]]) {
    for arguments in commands {
        let mut command = bearing(cluster.kith(arguments), bob);
        // A name that somebody gives is not theirs.
        command.env("KITH_WHO", "ada");
        let (code, message, help) = refused(command);
        assert_eq!(code, "permission_denied", "{arguments:?}: {message}");
        assert!(
            message.contains("the store is ada's") && message.contains("bob"),
            "{arguments:?}: {message}"
        );
        assert!(help.contains("ask ada, or an administrator"), "{arguments:?}: {help}");
    }
    let log = cluster.router_log();
    let lines = log.lines().filter(|line| line.contains("refused") && line.contains("the store is ada's"));
    let lines: Vec<&str> = lines.filter(|line| line.contains("\"bob\"")).collect();
    assert_eq!(lines.len(), commands.len(), "{log}");
    let first = lines[0];
    assert!(first.contains("audit=true") && first.contains("\"/kith.v1.Cluster/Store\""), "{first}");
}

/// The number of the oldest version of a store.
fn oldest_version(cluster: &SecuredCluster, store: &str, token: &Path) -> String {
    let versions = must(bearing(cluster.kith(&["store", "versions", store, "-o", "json"]), token));
    let versions: serde_json::Value = serde_json::from_str(&versions).expect("JSON");
    let numbers = versions.as_array().expect("a list").iter().map(|entry| entry["version"].as_u64());
    numbers.min().flatten().expect("a version").to_string()
}

#[test]
fn what_a_store_is_is_for_its_owner_and_administrators_to_change() {
    let admin = "admin = [\"pages\"]";
    let cluster =
        SecuredCluster::start(|folder| rights(folder, &[("ada", "ada's", admin), ("bob", "bob's", admin)]));
    let ops = cluster.authority.papers("ops");
    fill(&cluster, "pages", 100, &ops);
    let rows = cluster.folder.path().join("pages.csv");
    let rows = rows.to_str().expect("UTF-8");
    let [ada, bob] = ["ada", "bob"].map(|name| token_file(&cluster, name, &format!("{name}'s")));
    must(bearing(cluster.kith(&["store", "push", "pages", rows]), &ada));
    let first = oldest_version(&cluster, "pages", &ada);
    must(bearing(cluster.kith(&["store", "alter", "pages", "--owner", "ada"]), &bob));
    let for_owners = [
        &["store", "drop", "pages", "--yes"][..],
        &["store", "alter", "pages", "--owner", "bob"],
        &["store", "alter", "pages", "--owner", "off"],
        &["store", "alter", "pages", "--read-quota-keys", "1"],
        &["store", "alter", "pages", "--retain", "2"],
        &["store", "freeze", "pages"],
        &["store", "thaw", "pages"],
        &["store", "block", "pages", &first],
        &["store", "push", "pages", rows],
    ];
    assert_for_ada_alone(&cluster, &bob, &for_owners);
    // What is served is for everybody with the right to write.
    must(bearing(cluster.kith(&["store", "hold", "pages", &first]), &bob));
    must(bearing(cluster.kith(&["store", "rollback", "pages"]), &bob));
}

#[test]
fn owners_and_administrators_change_a_store_and_give_it_away() {
    let admin = "admin = [\"pages\"]";
    let cluster =
        SecuredCluster::start(|folder| rights(folder, &[("ada", "ada's", admin), ("bob", "bob's", admin)]));
    let ops = cluster.authority.papers("ops");
    fill(&cluster, "pages", 100, &ops);
    let rows = cluster.folder.path().join("pages.csv");
    let rows = rows.to_str().expect("UTF-8");
    let ada = token_file(&cluster, "ada", "ada's");
    must(bearing(cluster.kith(&["store", "alter", "pages", "--owner", "ada"]), &ada));
    for arguments in [
        &["store", "alter", "pages", "--retain", "3"][..],
        &["store", "freeze", "pages"],
        &["store", "thaw", "pages"],
        &["store", "push", "pages", rows],
        &["store", "alter", "pages", "--owner", "bob"],
    ] {
        must(bearing(cluster.kith(arguments), &ada));
    }
    let (code, message, _) = refused(bearing(cluster.kith(&["store", "drop", "pages", "--yes"]), &ada));
    assert!(code == "permission_denied" && message.contains("the store is bob's"), "{code}: {message}");
    must(with(cluster.kith(&["store", "push", "pages", rows]), &ops));
    must(with(cluster.kith(&["store", "alter", "pages", "--owner", "ada"]), &ops));
    must(with(cluster.kith(&["store", "drop", "pages", "--yes"]), &ops));
}
