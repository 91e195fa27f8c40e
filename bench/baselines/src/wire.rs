//! OP_MSG with a handler that answers every message with one document.

use anyhow::Result;
use bolide_bench::client::{Bson, message};
use bolide_bench::documents::{Fields, Shape};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const MAX_MESSAGE_BYTES: usize = 48 << 20;

pub async fn serve(address: &str) -> Result<()> {
    let listener = TcpListener::bind(address).await?;
    let document = Fields::new(0, 0, Shape::of_size(1024)).bson(0).finish();
    let cursor = Bson::new().array("firstBatch", [document]).long("id", 0).text("ns", "db.c1024");
    let answer = message("db", Bson::new().document("cursor", cursor).int("n", 1).double("ok", 1.0));
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let answer = answer.clone();
        tokio::spawn(async move {
            // A client that disconnects ends its task.
            let _ = talk(socket, &answer).await;
        });
    }
}

async fn talk(mut socket: TcpStream, answer: &[u8]) -> Result<()> {
    let mut held = Vec::with_capacity(4096);
    loop {
        if socket.read_buf(&mut held).await? == 0 {
            return Ok(());
        }
        while let Some(head) = held.first_chunk::<4>() {
            let length = u32::from_le_bytes(*head) as usize;
            anyhow::ensure!((16..=MAX_MESSAGE_BYTES).contains(&length), "a message of {length} bytes");
            if held.len() < length {
                break;
            }
            held.drain(..length);
            socket.write_all(answer).await?;
        }
    }
}
