//! Peers that break the rules: they get an error or lose their connection, and no other client notices.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, Value, Writer};
use mongo::{Authentication, Limits};
use transport::{Admission, Bounds};

use crate::client::{PASSWORD, Server, code, frame, kind_0, op_msg, op_query, ping_message, reply, settings};
use crate::scram::{Exchange, Hash, authenticate};

/// The server closes the connection that sends this, and serves the next one.
async fn is_shown_the_door(server: &Server, bytes: &[u8], what: &str) {
    let mut client = server.connect().await;
    client.send(bytes).await;
    assert!(client.is_closed().await, "{what}");
    server.connect().await.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_lengths_and_opcodes_end_the_connection() {
    let server = Server::start().await;
    for length in [0, 1, 15, -1, i32::MIN, i32::MAX, 48_000_001] {
        let mut message = ping_message(1);
        message[..4].copy_from_slice(&length.to_le_bytes());
        is_shown_the_door(&server, &message, &format!("length {length}")).await;
    }
    for opcode in [0, 1, 2001, 2002, 2003, 2005, 2006, 2007, 2010, 2011, -1, i32::MAX] {
        is_shown_the_door(&server, &frame(1, opcode, &[0; 40]), &format!("opcode {opcode}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cut_of_a_message_is_survived() {
    let server = Server::start().await;
    let whole = op_msg(1, 0, &[kind_0(&Document::new().with("hello", 1).with("$db", "admin"))]);
    // Cut where the frame still says its length: the rest never comes.
    for end in (1..whole.len()).step_by(7) {
        let mut client = server.connect().await;
        client.send(&whole[..end]).await;
        drop(client);
    }
    // Cut with a frame that fits.
    for end in 16..whole.len() {
        let mut client = server.connect().await;
        client.send(&frame(1, 2013, &whole[16..end])).await;
        match client.read().await {
            None => {}
            Some(message) => assert_ne!(code(&reply(&message)), 0, "{end}"),
        }
    }
    server.connect().await.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_required_flags_are_refused_and_optional_ones_are_not() {
    let server = Server::start().await;
    let ping = kind_0(&Document::new().with("ping", 1).with("$db", "admin"));
    for bit in 2..16 {
        let mut client = server.connect().await;
        client.send(&op_msg(1, 1 << bit, std::slice::from_ref(&ping))).await;
        assert_eq!(code(&reply(&client.read().await.unwrap())), 223, "bit {bit}");
        assert!(client.is_closed().await);
    }
    let mut client = server.connect().await;
    for bit in 16..32 {
        client.send(&op_msg(1, 1 << bit, std::slice::from_ref(&ping))).await;
        assert!(reply(&client.read().await.unwrap()).get("code").is_none(), "bit {bit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_nesting_is_an_error_and_not_the_end() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for levels in [201, 1000, 100_000] {
        let mut writer = Writer::default();
        for _ in 0..levels {
            writer.open_document("a");
        }
        let document = writer.finish();
        client.send(&op_msg(1, 0, &[[&[0], document.as_bytes()].concat()])).await;
        assert_eq!(code(&reply(&client.read().await.unwrap())), 15, "{levels}");
    }
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_compression_ends_the_connection() {
    let server = Server::start().await;
    let packed = |opcode: i32, size: i32, id: u8, payload: &[u8]| {
        let head = [opcode, size].map(i32::to_le_bytes).concat();
        frame(1, 2012, &[&head[..], &[id], payload].concat())
    };
    let zeros = {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![0; 60_000_000]).unwrap();
        encoder.finish().unwrap()
    };
    let ping = ping_message(1).split_off(16);
    for (message, what) in [
        (packed(2013, 100, 1, b"rubbish"), "snappy"),
        (packed(2013, 100, 2, b"rubbish"), "zlib"),
        (packed(2013, 100, 3, b"rubbish"), "zstd"),
        (packed(2013, ping.len() as i32, 9, &ping), "an unknown compressor"),
        (packed(2012, ping.len() as i32, 0, &ping), "compressed twice"),
        (packed(1, ping.len() as i32, 0, &ping), "a reply"),
        (packed(2013, -1, 0, &ping), "a negative size"),
        (packed(2013, i32::MAX, 0, &ping), "an enormous size"),
        (packed(2013, ping.len() as i32 + 1, 0, &ping), "a size that is not true"),
        (packed(2013, 47_000_000, 2, &zeros), "more than it says"),
        (packed(2013, 1000, 2, &zeros), "much more than it says"),
        (frame(1, 2012, &[0; 8]), "half a header"),
    ] {
        is_shown_the_door(&server, &message, what).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_do_no_harm() {
    let server = Server::start().await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let sound = [
        ping_message(1),
        op_query(1, "admin.$cmd", &Document::new().with("ismaster", 1)),
        op_msg(1, 1, &[kind_0(&Document::new().with("hello", 1).with("$db", "admin")), vec![0; 4]]),
    ];
    for _ in 0..300 {
        let mut client = server.connect().await;
        let mut bytes = sound[random.usize(..sound.len())].clone();
        for _ in 0..random.usize(1..6) {
            // The length stays, so that there is a whole message to look at.
            let at = random.usize(4..bytes.len());
            bytes[at] = random.u8(..);
        }
        client.send(&bytes).await;
        drop(client);
    }
    server.connect().await.ping().await;
}

/// A server with one limit that is short. Each has a server of its own: what a test waits for is over soon, and an honest peer on a
/// busy machine still has as long as it needs for everything else.
async fn hasty(shorten: impl FnOnce(&mut Limits, Duration)) -> Server {
    let mut settings = settings();
    shorten(&mut settings.limits, Duration::from_millis(500));
    Server::with(settings).await
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_peers_lose_their_place() {
    let begin =
        |limits: &mut Limits, short| (limits.handshake_timeout, limits.read_pause_timeout) = (short, short);
    let server = hasty(begin).await;
    for said in [0, 1, 2, 15, 16, 20] {
        let mut client = server.connect().await;
        client.send(&ping_message(1)[..said]).await;
        assert!(client.is_closed().await, "after {said} bytes");
    }
    // The first bytes of a TLS handshake, and of a message that looks like one.
    for said in [&[0x16][..], &[0x16, 0x03], &[0x16, 0x03, 0x00]] {
        let mut client = server.connect().await;
        client.send(said).await;
        assert!(client.is_closed().await, "after {said:?}");
    }
    let server = hasty(|limits, short| limits.idle_timeout = short).await;
    let mut client = server.connect().await;
    client.send(&ping_message(1)).await;
    // On a busy machine the connection may have ended before its message comes.
    while client.read().await.is_some() {}
    let server = hasty(|limits, short| limits.read_pause_timeout = short).await;
    let mut client = server.connect().await;
    client.ping().await;
    client.send(&ping_message(2)[..20]).await;
    assert!(client.is_closed().await, "a message that stops");
    // Steady drops do not keep a message open either.
    let server = hasty(|limits, short| limits.message_timeout = short).await;
    let mut client = server.connect().await;
    client.ping().await;
    for byte in &frame(1, 2013, &[0; 400])[..200] {
        client.send(std::slice::from_ref(byte)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(client.is_closed().await, "a message that trickles");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_only_so_many_connections() {
    let mut settings = settings();
    settings.limits.connections = 3;
    let server = Server::with(settings).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect().await;
        client.ping().await;
        held.push(client);
    }
    assert!(server.connect().await.is_closed().await, "one too many");
    held.pop();
    // The slot is free once the server has noticed.
    for _ in 0..2000 {
        let mut client = server.connect().await;
        client.send(&ping_message(1)).await;
        if client.read().await.is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the place of a client that has left was never given to another");
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_clients_send_no_large_messages() {
    let mut settings = settings();
    settings.authentication = Authentication::Required;
    let server = Server::with(settings).await;
    let mut message = ping_message(1);
    message[..4].copy_from_slice(&2_000_000_i32.to_le_bytes());
    is_shown_the_door(&server, &message, "2 MB announced").await;
    message[..4].copy_from_slice(&(16 * 1024 + 1_i32).to_le_bytes());
    is_shown_the_door(&server, &message, "a byte more than 16 KiB announced").await;
    // A few kilobytes that announce two million bytes, and unpack to as many.
    let large = kind_0(&Document::new().with("ping", "x".repeat(2_000_000)).with("$db", "admin"));
    let large = [vec![0; 4], large].concat();
    let packed = {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&large).unwrap();
        encoder.finish().unwrap()
    };
    let head = [2013, large.len() as i32].map(i32::to_le_bytes).concat();
    let message = frame(1, 2012, &[&head[..], &[2], &packed].concat());
    is_shown_the_door(&server, &message, "2 MB in a small coat").await;
    let open = Server::start().await;
    let mut client = open.connect().await;
    client.send(&message).await;
    assert!(client.read().await.is_some(), "a client that need not authenticate is not counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_announced_is_not_allocated() {
    let server = Server::start().await;
    let mut message = ping_message(1);
    message[..4].copy_from_slice(&48_000_000_i32.to_le_bytes());
    let mut held = Vec::new();
    // Ten gigabytes are announced; there is room for twenty such messages, and small ones are served meanwhile.
    for _ in 0..200 {
        let mut client = server.connect().await;
        client.send(&message).await;
        held.push(client);
    }
    let mut client = server.connect().await;
    client.ping().await;
    assert!(resident_mebibytes().is_none_or(|mebibytes| mebibytes < 1000));
}

fn resident_mebibytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_lets_a_message_finish_and_closes_the_idle() {
    let mut server = Server::start().await;
    let (mut idle, mut busy) = (server.connect().await, server.connect().await);
    idle.ping().await;
    busy.ping().await;
    let message = ping_message(7);
    busy.send(&message[..20]).await;
    // The server has the first bytes once it answers something that was sent later.
    server.connect().await.ping().await;
    server.shut_down();
    assert!(idle.is_closed().await);
    busy.send(&message[20..]).await;
    let answered = busy.read().await;
    assert_eq!(answered.unwrap().response_to, 7);
    assert!(busy.is_closed().await);
    server.ended.take().unwrap().await.unwrap();
}

/// A header of sixteen bytes, and nothing behind it.
fn announcement(bytes: i32) -> Vec<u8> {
    let mut message = ping_message(1);
    message.truncate(16);
    message[..4].copy_from_slice(&bytes.to_le_bytes());
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_announced_and_does_not_come_takes_no_room() {
    for (authentication, announced) in
        [(Authentication::Required, 16 * 1024), (Authentication::Optional, 500_000)]
    {
        let load = Arc::new(Admission::new(Bounds { held_bytes: 1 << 20, ..Bounds::default() }));
        let settings = mongo::Settings { authentication, admission: Arc::clone(&load), ..settings() };
        let server = Server::with(settings).await;
        let mut silent = Vec::new();
        for _ in 0..40 {
            let mut client = server.connect().await;
            client.send(&announcement(announced)).await;
            silent.push(client);
        }
        let mut client = server.connect().await;
        client.ping().await;
        // The reply to the ping may still be counted; one announcement would be more.
        let counted = load.held_bytes() + load.unauthenticated().bytes;
        assert!(counted < 16 * 1024, "{authentication:?}: {counted} bytes");
        authenticate(&mut client, Hash::Sha256, "admin", "bolide", PASSWORD).await.unwrap();
        let large = Document::new().with("_id", 1).with("text", "x".repeat(300_000));
        let insert = Document::new().with("insert", "c").with("documents", vec![Value::from(large)]);
        let inserted = tokio::time::timeout(Duration::from_mins(1), client.done("test", insert)).await;
        assert!(inserted.is_ok(), "{authentication:?}: the room for large messages is free");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unauthenticated_message_is_charged_to_unauthenticated_clients_until_it_is_whole() {
    let load = Arc::new(Admission::default());
    let authentication = Authentication::Required;
    let settings = mongo::Settings { authentication, admission: Arc::clone(&load), ..settings() };
    let server = Server::with(settings).await;
    let padded = Document::new().with("ping", 1).with("comment", "x".repeat(12_000)).with("$db", "admin");
    let message = op_msg(1, 0, &[kind_0(&padded)]);
    let mut client = server.connect().await;
    client.send(&message[..8_000]).await;
    for _ in 0..2000 {
        if load.unauthenticated().bytes == message.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((load.held_bytes(), load.unauthenticated().bytes), (0, message.len()));
    client.send(&message[8_000..]).await;
    assert!(reply(&client.read().await.unwrap()).get("code").is_none());
}

/// What a client has sent to authenticate is kept until it has done so, and counts as long.
#[tokio::test(flavor = "multi_thread")]
async fn an_authentication_that_has_begun_counts_until_it_ends() {
    const NAME: usize = 4000;
    let load = Arc::new(Admission::default());
    let authentication = Authentication::Required;
    let settings = mongo::Settings { authentication, admission: Arc::clone(&load), ..settings() };
    let server = Server::with(settings).await;
    let counted = async |wanted: std::ops::Range<usize>| {
        for _ in 0..2000 {
            if wanted.contains(&load.unauthenticated().bytes) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} bytes instead of {wanted:?}", load.unauthenticated().bytes);
    };
    let long = "u".repeat(NAME);
    let start = || Exchange::new(Hash::Sha256, &long, "wrong").start(true);
    let mut client = server.connect().await;
    for begun in [start(), Document::new().with("hello", 1).with("speculativeAuthenticate", start())] {
        client.ok(begun).await;
        // The name three times, and the message without its beginning.
        counted(4 * NAME..6 * NAME).await;
    }
    let database = start().with("db", "d".repeat(10_000));
    let refused = client.ok(Document::new().with("hello", 1).with("speculativeAuthenticate", database)).await;
    assert!(!refused.contains("speculativeAuthenticate"), "no database has such a name: {refused:?}");
    let mut exchange = Exchange::new(Hash::Sha256, &long, "wrong");
    let first = client.ok(exchange.start(true)).await;
    assert_eq!(client.refused(exchange.prove(&first)).await.0, 18);
    counted(NAME..NAME + 100).await;
    authenticate(&mut client, Hash::Sha256, "admin", "bolide", PASSWORD).await.unwrap();
    counted(0..1).await;
    let mut leaving = server.connect().await;
    leaving.ok(start()).await;
    counted(4 * NAME..6 * NAME).await;
    drop(leaving);
    counted(0..1).await;
}
