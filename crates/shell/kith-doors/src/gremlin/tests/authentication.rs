//! Tests of unauthenticated peers, tokens and rights.

use super::*;
use kith_net::server::security::{Caller, CallerIdentity, testing::gate};
use sha2::{Digest, Sha256};

/// A peer without a certificate, of a gate that knows the token `ads-token`, which may read `people`, read and write `notes`, and
/// write `letters`.
fn nobody(folder: &std::path::Path) -> CallerRights {
    let hash: String = Sha256::digest("ads-token").iter().map(|byte| format!("{byte:02x}")).collect();
    let access = format!(
        "[[subject]]\nname = \"ads\"\ntoken-sha256 = [\"{hash}\"]\nread = [\"people\", \"notes\"]\nwrite = [\"notes\", \"letters\"]\n"
    );
    CallerRights::new(gate(folder, Some(&access)), Caller::new(CallerIdentity::Nobody), "gremlin")
}

fn credentials(token: &str) -> Map {
    let message = format!("\0user\0{token}");
    map(&[("saslMechanism", Value::text("PLAIN")), ("sasl", Value::Binary(message.into_bytes().into()))])
}

const AUTHENTICATION: (&str, &str) = ("traversal", "authentication");

#[tokio::test]
async fn the_first_request_is_served_after_the_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut driver = Driver::of(nobody(folder.path())).await;
    let text = |text: &str| map(&[("gremlin", Value::text(text)), aliases("people")]);
    let id = driver.ask(("", "eval"), text("g.inject(1)")).await;
    assert_eq!(driver.read().await.1, 407);
    // A driver need not wait for the demand.
    let second = driver.ask(("", "eval"), text("g.inject(2)")).await;
    assert!(driver.connection.graphs.asked.lock().is_empty());
    driver.ask_as(id, AUTHENTICATION, credentials("ads-token")).await;
    let replies = driver.until_over(&[id, second]).await;
    assert_eq!(
        (&replies[&id].values, &replies[&second].values),
        (&vec![Value::Int(1)], &vec![Value::Int(2)])
    );
    let again = driver.ask(AUTHENTICATION, credentials("ads-token")).await;
    assert_eq!(driver.until_over(&[again]).await[&again].codes, [204]);
}

#[tokio::test]
async fn a_wrong_token_is_refused_with_all_that_waits_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut driver = Driver::of(nobody(folder.path())).await;
    let id = driver.eval("g.inject(1)").await;
    let second = driver.eval("g.inject(2)").await;
    driver.ask_as(id, AUTHENTICATION, credentials("guess")).await;
    let replies = driver.until_over(&[id, second]).await;
    assert_eq!((&*replies[&id].codes, &*replies[&second].codes), (&[407, 401][..], &[401][..]));
    assert_eq!(replies[&id].message, "no subject has this token (ask an administrator for one)");
    assert!(driver.connection.graphs.asked.lock().is_empty());
    let third = driver.eval("g.inject(1)").await;
    assert_eq!(driver.read().await.1, 407, "it can try again");
    let mechanism = map(&[("saslMechanism", Value::text("GSSAPI")), ("sasl", Value::text(""))]);
    driver.ask_as(third, AUTHENTICATION, mechanism).await;
    assert_eq!(driver.read().await.1, 499);
}

#[tokio::test]
async fn rights_are_those_of_the_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut driver = Driver::of(nobody(folder.path())).await;
    let id = driver.ask(AUTHENTICATION, credentials("ads-token")).await;
    assert_eq!(driver.until_over(&[id]).await[&id].codes, [204]);
    for (text, graph, code) in [
        ("g.inject(1)", "people", 200),
        ("g.inject(1)", "secrets", 403),
        ("g.addV()", "people", 403),
        // A traversal that writes reads as well.
        ("g.inject(1)", "letters", 403),
        ("g.addV()", "letters", 403),
        ("g.V().property('seen', true)", "letters", 403),
        // The right is there; the service is overloaded.
        ("g.addV()", "notes", 596),
    ] {
        let arguments = map(&[("gremlin", Value::text(text)), aliases(graph)]);
        let id = driver.ask(("", "eval"), arguments).await;
        assert_eq!(driver.until_over(&[id]).await[&id].codes, [code], "{text} {graph}");
    }
}
