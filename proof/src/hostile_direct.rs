//! The effect of peers without a valid key that speak direct mode, inside TLS: the attacks of `hostile.rs` that apply to it.
//!
//! Each peer opens a connection and does one of the things in the table until the server ends it; some seconds later it
//! opens another. These attacks have little traffic: handshakes at full speed are a flood, which is the network's problem.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use bolide_bench::client::date;
use direct::{Account, Call, TlsClient, connector};
use rntbd::{HEAD_BYTES, OperationType};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use crate::hostile::{Attack, By, run_attacks};
use crate::hostile_attacks::WITHOUT_A_KEY;
use crate::process::Server;
use crate::{Outcome, Setting};

/// The largest frame of an unauthenticated client, and the largest payload that the server skips instead of ending the
/// connection.
const FRAME_BYTES: u32 = 16 << 10;
const PAYLOAD_BYTES: u32 = 16 << 20;
/// Requests that are refused before the server ends the connection.
const REFUSALS: usize = 16;
const READ: &str = "dbs/db/colls/c/docs/small";

const ATTACKS: &[Attack] = &[
    Attack::new(
        "600 connections in direct mode send a context and then nothing",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| crowd(server, over, 600, Manner::Silent),
    ),
    // Together they hold more than the budget of unauthenticated connections.
    Attack::new(
        "900 connections in direct mode announce frames that do not come",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| crowd(server, over, 900, Manner::AnnouncesFrames),
    ),
    Attack::new(
        "600 connections in direct mode announce payloads of 16 MiB that do not come",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| crowd(server, over, 600, Manner::AnnouncesPayloads),
    ),
    Attack::new(
        "300 connections in direct mode send wrong signatures",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| crowd(server, over, 300, Manner::SignsWrongly),
    ),
    Attack::new(
        "300 connections in direct mode leave refusals of long requests unread",
        By::Unauthenticated,
        WITHOUT_A_KEY,
        |server, over| crowd(server, over, 300, Manner::LeavesUnread),
    ),
];

/// What a peer does with an open connection.
#[derive(Clone, Copy)]
enum Manner {
    Silent,
    AnnouncesFrames,
    AnnouncesPayloads,
    SignsWrongly,
    LeavesUnread,
}

/// Runs the check.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    run_attacks(setting, place, ATTACKS)
}

/// Runs this many peers until it is over; returns how many connections they opened.
fn crowd(server: &Server, over: &AtomicBool, count: u64, manner: Manner) -> Result<u64> {
    let address = server.address.parse()?;
    let connector = connector(CertificateDer::from_pem_slice(&server.root_certificate()?)?)?;
    let made = Arc::new(AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    for number in 0..count {
        let peer = Peer { number, address, connector: connector.clone(), made: Arc::clone(&made) };
        // All of them within two seconds.
        let delay = Duration::from_millis(number * 2000 / count);
        runtime.spawn(async move {
            sleep(delay).await;
            loop {
                // The server may end the connection in any way.
                let _ = peer.attack(manner).await;
                sleep(Duration::from_millis(fastrand::u64(5_000..15_000))).await;
            }
        });
    }
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(made.load(Ordering::Relaxed))
}

/// A peer without a key.
struct Peer {
    number: u64,
    address: SocketAddr,
    connector: TlsConnector,
    made: Arc<AtomicU64>,
}

impl Peer {
    /// Attacks by one connection, until that ends.
    async fn attack(&self, manner: Manner) -> io::Result<()> {
        let wrong = Account { key: "d3Jvbmc=".to_owned(), date: date() };
        let mut client = TlsClient::connect(self.address, &self.connector, wrong).await?;
        self.made.fetch_add(1, Ordering::Relaxed);
        let call = Call::new(OperationType::Read, READ).key("[\"p\"]");
        match manner {
            Manner::Silent => {}
            Manner::AnnouncesFrames => {
                let (_, mut bytes) = client.sender.session.request(&call)?;
                // Some announce more than any frame may have.
                let announced = if self.number.is_multiple_of(10) { u32::MAX } else { FRAME_BYTES };
                bytes[..4].copy_from_slice(&announced.to_le_bytes());
                client.sender.write(&bytes[..HEAD_BYTES]).await?;
            }
            Manner::AnnouncesPayloads => {
                let (_, mut bytes) = client.sender.session.request(&call.payload("x"))?;
                bytes.truncate(bytes.len() - 5);
                bytes.extend(PAYLOAD_BYTES.to_le_bytes());
                client.sender.write(&bytes).await?;
            }
            Manner::SignsWrongly => loop {
                client.call(&call).await?;
            },
            Manner::LeavesUnread => {
                let long = "x".repeat(FRAME_BYTES as usize - 1024);
                let call = call.with(|tokens| tokens.pre_trigger_include = Some(&long));
                for _ in 0..REFUSALS {
                    client.sender.send(&call).await?;
                }
                // A peer that does not read sees no end; but a write to a connection that has ended fails.
                loop {
                    sleep(Duration::from_secs(1)).await;
                    client.sender.write(&[0]).await?;
                }
            }
        }
        while client.receiver.reply().await?.is_some() {}
        Ok(())
    }
}
