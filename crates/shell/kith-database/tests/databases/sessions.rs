//! Servers with other defaults than Kith relies on, and servers that lie.

use crate::support::{P, batch, change, identity, lead, list, object, on, part, target, write};
use kith_database::testing::MariaDb;
use kith_database::{CommitError, Database, DatabaseError, MysqlDatabase, MysqlOptions};
use kith_live::{Batch, RowAnswer, RowQuery, RowWrite};
use kith_types::ErrorCode;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

fn arguments(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// Creates a graph on a server, and returns why that fails.
async fn refused(server: &MariaDb, name: &str) -> DatabaseError {
    server.execute(&format!("CREATE DATABASE {name}")).await;
    let target = target(&server.address(name));
    let created = MysqlDatabase::create(target, identity(), MysqlOptions::default()).await;
    created.err().expect("the server is not as Kith needs it")
}

#[tokio::test]
async fn what_a_session_needs_is_set_whatever_the_server_has() {
    let text = [
        "--default-time-zone=+05:45",
        "--character-set-server=utf16",
        "--collation-server=utf16_bin",
        "--skip-character-set-client-handshake",
    ];
    for (options, globals) in [
        (&["--autocommit=0", "--transaction-isolation=SERIALIZABLE"][..], "DO 1"),
        (&text, "DO 1"),
        (
            &["--completion-type=CHAIN", "--sql-mode=ANSI"],
            "SET GLOBAL sql_safe_updates = 1, sql_select_limit = 1",
        ),
        (&["--completion-type=RELEASE"], "SET GLOBAL autocommit = 0, tx_read_only = 1"),
        (&["--log-bin=bin", "--server-id=1", "--binlog-format=MIXED"], "DO 1"),
    ] {
        let server = MariaDb::start(&arguments(options)).await;
        let names = [server.database().await, server.database().await];
        server.execute(globals).await;
        for (statements_together, name) in [true, false].into_iter().zip(names) {
            let settings = MysqlOptions { statements_together, ..MysqlOptions::default() };
            let created = MysqlDatabase::create(target(&server.address(&name)), identity(), settings).await;
            let database = created.expect("the server can be used");
            let mut end = lead(&database, P, 1).await;
            for id in 0..3 {
                end = write(&database, P, end, vec![RowWrite::PutObject(object(id, "é"))]).await;
            }
            let removed = vec![RowWrite::DeleteObject(1), RowWrite::SetCount(list(1), 2)];
            end = write(&database, P, end, removed).await;
            assert_eq!(database.points(vec![P]).await, Ok(vec![end]), "{options:?}");
            let page = database.scan_objects(P, None, 9).await.expect("the read succeeds");
            assert_eq!(page.objects, [object(0, "é"), object(2, "é")], "{options:?}");
            let answers = database.read(P, vec![RowQuery::Count(list(1))]).await.expect("the read succeeds");
            assert_eq!(answers.answers, [RowAnswer::Count(2)]);
        }
    }
}

#[tokio::test]
async fn a_server_that_logs_statements_is_refused_before_anything_is_written() {
    let options = arguments(&["--log-bin=bin", "--server-id=1", "--binlog-format=STATEMENT"]);
    let server = MariaDb::start(&options).await;
    let error = refused(&server, "wrong").await;
    assert_eq!(error.code(), ErrorCode::DatabaseRefused);
    let message = error.to_string();
    assert!(
        message.contains("binlog_format") && message.contains("1665") && message.contains("ROW"),
        "{message}"
    );
    assert!(server.rows("SHOW TABLES FROM wrong").await.is_empty(), "no tables were made");
}

#[tokio::test]
async fn a_server_with_tiny_packets_is_refused_by_name() {
    let server = MariaDb::start(&arguments(&["--max-allowed-packet=256K"])).await;
    let error = refused(&server, "wrong").await;
    assert_eq!(error.code(), ErrorCode::DatabaseRefused);
    assert!(error.to_string().contains("max_allowed_packet of the server is 262144"), "{error}");
}

#[tokio::test]
async fn small_packets_take_all_writes_but_those_with_longer_values() {
    let server = MariaDb::start(&arguments(&["--max-allowed-packet=1M"])).await;
    let database = on(&server, MysqlOptions::default()).await;
    let end = lead(&database, P, 1).await;
    let put = |id, bytes: usize| RowWrite::PutObject(object(id, &"x".repeat(bytes)));
    // One transaction of 6 MB, and a read of as much.
    let changes = (0..16).map(|id| change(vec![put(id, 400_000)])).map(|mut it| {
        it.change.effects.clear();
        it
    });
    let parts = vec![part(P, end, changes.collect())];
    database.commit(Batch { parts, requires: Vec::new() }).await.expect("each value fits");
    let end = kith_types::LogPoint { position: kith_types::Position(end.position.0 + 16), ..end };
    let queries = (0..20_000).map(RowQuery::Object).collect();
    let found = database.read(P, queries).await.expect("the read succeeds").answers;
    assert_eq!(found.iter().filter(|it| matches!(it, RowAnswer::Object(Some(_)))).count(), 16);

    let error = database.commit(batch(P, end, vec![put(99, 600_000)])).await.expect_err("it does not fit");
    assert_eq!(error.code(), ErrorCode::TooLarge);
    let CommitError::NotWritten(DatabaseError::TooLarge { value_max: Some(most), reason }) = error else {
        panic!("{error}")
    };
    assert!(most < 600_000 && reason.contains("max_allowed_packet"), "{most} {reason}");
    write(&database, P, end, vec![put(100, 500_000)]).await;
}

#[tokio::test]
async fn a_limit_that_is_lowered_later_is_noticed() {
    let server = MariaDb::start(&arguments(&["--max-allowed-packet=16M"])).await;
    let database = on(&server, MysqlOptions { writers_max: 1, ..MysqlOptions::default() }).await;
    let end = lead(&database, P, 1).await;
    server.execute("SET GLOBAL max_allowed_packet = 1048576").await;
    // Sessions keep their limit, so those of the pool are ended.
    let sessions = "SELECT CONCAT('KILL ', id) AS k FROM information_schema.processlist WHERE db IS NOT NULL";
    for row in server.rows(sessions).await {
        let kill = row.split('"').find(|part| part.starts_with("KILL")).expect("a session");
        server.execute(kill).await;
    }
    let large = || vec![RowWrite::PutObject(object(1, &"x".repeat(1 << 20)))];
    let error = database.commit(batch(P, end, large())).await.expect_err("it does not fit");
    assert_eq!(error.code(), ErrorCode::TooLarge, "{error}");
    write(&database, P, end, vec![RowWrite::PutObject(object(1, "x"))]).await;
}

/// Greets a connection like a server, answers everything before `SHOW` with success, and returns the connection once `SHOW`
/// has been asked.
async fn greeted(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut greeting = vec![10];
    greeting.extend(b"5.7.0\0");
    greeting.extend([1, 0, 0, 0]);
    greeting.extend(b"12345678\0");
    // Transactions, the protocol of 4.1, several statements and results, and login plugins.
    let capabilities: u32 =
        0x0000_0001 | 0x0000_0008 | 0x0000_0200 | 0x0000_2000 | 0x0000_8000 | 0x0003_0000 | 0x0008_0000;
    greeting.extend(&capabilities.to_le_bytes()[..2]);
    greeting.push(45);
    greeting.extend([2, 0]);
    greeting.extend(&capabilities.to_le_bytes()[2..]);
    greeting.push(21);
    greeting.extend([0; 10]);
    greeting.extend(b"123456789012\0");
    greeting.extend(b"mysql_native_password\0");
    send(&mut stream, 0, &greeting).await;
    received(&mut stream).await;
    send(&mut stream, 2, &[0, 0, 0, 2, 0, 0, 0]).await;
    loop {
        let request = received(&mut stream).await;
        if request.starts_with(b"\x03SHOW") {
            return stream;
        }
        send(&mut stream, 1, &[0, 0, 0, 2, 0, 0, 0]).await;
    }
}

async fn send(stream: &mut TcpStream, number: u8, packet: &[u8]) {
    let length = u32::try_from(packet.len()).expect("a short packet").to_le_bytes();
    stream.write_all(&[length[0], length[1], length[2], number]).await.expect("the client reads");
    stream.write_all(packet).await.expect("the client reads");
}

async fn received(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.expect("the client sends");
    let mut packet = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut packet).await.expect("the client sends");
    packet
}

/// A server that sends packets of 16 MiB as parts of one, until the client hangs up. Returns how many bytes it could send.
async fn endless_packet(mut stream: TcpStream, first: u8) -> usize {
    let (piece, mut sent) = (vec![b'x'; 1 << 20], 0);
    for number in first.. {
        let head = [0xff, 0xff, 0xff, number];
        if stream.write_all(&head).await.is_err() {
            break;
        }
        for part in [&piece[..]; 16].into_iter().enumerate().map(|(at, piece)| &piece[usize::from(at == 0)..])
        {
            match stream.write_all(part).await {
                Ok(()) => sent += part.len(),
                Err(_) => return sent,
            }
        }
    }
    sent
}

/// A server that sends rows until the client hangs up. Returns how many bytes it could send.
async fn endless_rows(mut stream: TcpStream) -> usize {
    let column = b"\x03def\x00\x00\x00\x01n\x00\x0c\x2d\x00\xff\xff\xff\xff\xfd\x00\x00\x00\x00\x00";
    send(&mut stream, 1, &[2]).await;
    send(&mut stream, 2, column).await;
    send(&mut stream, 3, column).await;
    send(&mut stream, 4, &[0xfe, 0, 0, 2, 0]).await;
    let row = vec![b'x'; 1 << 20];
    let packet = [&[1, b'n', 0xfd], &(row.len() as u32).to_le_bytes()[..3], &row].concat();
    let mut sent = 0;
    for number in 0_u8..=255 {
        let length = (packet.len() as u32).to_le_bytes();
        let head = [length[0], length[1], length[2], number.wrapping_add(5)];
        let head = stream.write_all(&head).await;
        match head.and(stream.write_all(&packet).await) {
            Ok(()) => sent += packet.len(),
            Err(_) => break,
        }
    }
    sent
}

#[tokio::test]
async fn a_server_that_sends_without_end_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = format!("mysql://root@{}/x", listener.local_addr().expect("an address"));
    let asked = || {
        let (target, options) = (target(&address), MysqlOptions::default());
        tokio::spawn(MysqlDatabase::open(target, identity(), options))
    };
    let timeout = Duration::from_secs(60);
    // In place of its greeting, after the login, and as rows.
    for way in 0..3 {
        let open = asked();
        let sent = match way {
            0 => endless_packet(listener.accept().await.expect("a connection").0, 0).await,
            1 => endless_packet(greeted(&listener).await, 1).await,
            _ => endless_rows(greeted(&listener).await).await,
        };
        let opened = tokio::time::timeout(timeout, open).await.expect("it ends").expect("no panic");
        let error = opened.err().expect("the server lies");
        assert!(sent < 100 << 20, "way {way}: {sent} bytes were taken: {error}");
    }
}
