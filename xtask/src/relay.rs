//! A little distance: a TCP relay that holds back every answer for a few milliseconds.
//!
//! Several tests of the published suite set a timeout of a billionth of a second and demand that it fires. Python's
//! sockets round that up to a whole millisecond, and on the same machine Bolide answers within it. Over the relay the
//! suite meets the network it was written for.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::Result;

const DISTANCE: Duration = Duration::from_millis(3);

/// Relays a new loopback port to `target` until the process ends; says which port.
pub(crate) fn start(target: SocketAddr) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            if let Ok(server) = TcpStream::connect(target) {
                let _ = join(&client, &server);
            }
        }
    });
    Ok(address)
}

fn join(client: &TcpStream, server: &TcpStream) -> Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    pump(client.try_clone()?, server.try_clone()?, Duration::ZERO);
    pump(server.try_clone()?, client.try_clone()?, DISTANCE);
    Ok(())
}

fn pump(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            thread::sleep(delay);
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

    #[test]
    fn bytes_pass_both_ways_and_ends_are_passed_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = start(listener.local_addr().unwrap()).unwrap();
        let echo = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut text = String::new();
            socket.read_to_string(&mut text).unwrap();
            socket.write_all(text.as_bytes()).unwrap();
        });
        let mut client = TcpStream::connect(relay).unwrap();
        client.write_all(b"there and back").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "there and back");
        echo.join().unwrap();
    }
}
