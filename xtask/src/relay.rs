//! A TCP relay that can delay every answer for a while.
//!
//! Several tests of the published suite set a timeout of a billionth of a second and require that it fires. Python's
//! sockets round that up to a whole millisecond, and on the same machine Bolide answers within it. While such a test runs,
//! the pytest plugin holds a connection to the relay's second port, which delays the answers.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// Long enough that a busy machine has sent its request and waits for the answer.
const DISTANCE: Duration = Duration::from_millis(60);

/// The two ports of a relay, which runs until the process ends.
pub(crate) struct Relay {
    /// The port that leads to the server.
    pub(crate) address: SocketAddr,
    /// Answers are delayed while a client is connected here; one byte confirms it.
    pub(crate) distance: SocketAddr,
}

pub(crate) fn start(target: SocketAddr) -> Result<Relay> {
    let (traffic, control) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let relay = Relay { address: traffic.local_addr()?, distance: control.local_addr()? };
    let holders = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&holders);
    thread::spawn(move || {
        for holder in control.incoming().map_while(Result::ok) {
            hold(holder, Arc::clone(&counter));
        }
    });
    thread::spawn(move || {
        for client in traffic.incoming().map_while(Result::ok) {
            if let Ok(server) = TcpStream::connect(target) {
                let _ = join(&client, &server, &holders);
            }
        }
    });
    Ok(relay)
}

fn hold(mut holder: TcpStream, holders: Arc<AtomicUsize>) {
    thread::spawn(move || {
        holders.fetch_add(1, Ordering::SeqCst);
        if holder.write_all(b".").is_ok() {
            let _ = holder.read(&mut [0]);
        }
        holders.fetch_sub(1, Ordering::SeqCst);
    });
}

fn join(client: &TcpStream, server: &TcpStream, holders: &Arc<AtomicUsize>) -> Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    pump(client.try_clone()?, server.try_clone()?, None);
    pump(server.try_clone()?, client.try_clone()?, Some(Arc::clone(holders)));
    Ok(())
}

fn pump(mut from: TcpStream, mut to: TcpStream, holders: Option<Arc<AtomicUsize>>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if holders.as_ref().is_some_and(|holders| holders.load(Ordering::SeqCst) > 0) {
                thread::sleep(DISTANCE);
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Sends a line to an echo server over the relay; returns the time until it came back.
    fn round_trip(relay: &Relay) -> Duration {
        let started = Instant::now();
        let mut client = TcpStream::connect(relay.address).unwrap();
        client.write_all(b"there and back").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "there and back");
        started.elapsed()
    }

    #[test]
    fn answers_are_late_only_while_the_distance_is_held() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = start(listener.local_addr().unwrap()).unwrap();
        thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                let mut text = String::new();
                socket.read_to_string(&mut text).unwrap();
                socket.write_all(text.as_bytes()).unwrap();
            }
        });
        round_trip(&relay);
        let mut holder = TcpStream::connect(relay.distance).unwrap();
        holder.read_exact(&mut [0]).unwrap();
        assert!(round_trip(&relay) >= DISTANCE);
    }
}
