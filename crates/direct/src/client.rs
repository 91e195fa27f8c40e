//! A session over a stream.

use std::collections::HashMap;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};

use crate::call::Call;
use crate::session::{Account, Answers, Greeting, Reply, Session};

/// A connection. Its halves can be taken apart, to write while answers are read or are left unread.
#[derive(Debug)]
pub struct Client<S> {
    /// The half that writes.
    pub sender: Sender<S>,
    /// The half that reads.
    pub receiver: Receiver<S>,
}

/// The half of a connection that writes.
#[derive(Debug)]
pub struct Sender<S> {
    /// Signs and numbers the requests.
    pub session: Session,
    stream: WriteHalf<S>,
}

/// The half of a connection that reads.
#[derive(Debug)]
pub struct Receiver<S> {
    answers: Answers,
    stream: ReadHalf<S>,
    /// Answers that arrived before the one that the caller waits for.
    early: HashMap<Option<u32>, Reply>,
}

impl<S: AsyncRead + AsyncWrite> Client<S> {
    /// Returns a client of a stream on which nothing has been sent.
    pub fn new(stream: S, account: Account) -> Self {
        let (read, write) = split(stream);
        let receiver = Receiver { answers: Answers::default(), stream: read, early: HashMap::new() };
        Self { sender: Sender { session: Session::new(account), stream: write }, receiver }
    }

    /// Opens a connection: exchanges the contexts, and fails if the server refuses.
    pub async fn open(stream: S, account: Account) -> io::Result<Self> {
        let mut client = Self::new(stream, account);
        let greeting = client.greet().await?;
        if greeting.status == 200 {
            return Ok(client);
        }
        let reason = String::from_utf8_lossy(greeting.payload.as_deref().unwrap_or_default()).into_owned();
        Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("{}: {reason}", greeting.status)))
    }

    /// Sends a context request and returns the server's answer.
    pub async fn greet(&mut self) -> io::Result<Greeting> {
        let context = self.sender.session.context()?;
        self.sender.write(&context).await?;
        self.receiver.greeting().await
    }

    /// Sends a request and waits for its answer.
    pub async fn call(&mut self, call: &Call<'_>) -> io::Result<Reply> {
        let number = self.sender.send(call).await?;
        self.receiver.reply_to(number).await
    }
}

impl<S: AsyncWrite> Sender<S> {
    /// Sends a request and returns its number.
    pub async fn send(&mut self, call: &Call<'_>) -> io::Result<u32> {
        let (number, bytes) = self.session.request(call)?;
        self.write(&bytes).await?;
        Ok(number)
    }

    /// Sends bytes, whatever they are.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Ends the sending direction: nothing more follows.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}

impl<S: AsyncRead> Receiver<S> {
    /// Waits for the answer to the context request.
    pub async fn greeting(&mut self) -> io::Result<Greeting> {
        loop {
            if let Some(greeting) = self.answers.greeting()? {
                return Ok(greeting);
            }
            if !self.read().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Waits for the next answer in the order of arrival; nothing if the server closes the connection instead.
    pub async fn reply(&mut self) -> io::Result<Option<Reply>> {
        loop {
            if let Some(reply) = self.answers.reply()? {
                return Ok(Some(reply));
            }
            if !self.read().await? {
                return Ok(None);
            }
        }
    }

    /// Waits for the answer to a request. Others that arrive before are kept for their own calls.
    pub async fn reply_to(&mut self, number: u32) -> io::Result<Reply> {
        loop {
            if let Some(reply) = self.early.remove(&Some(number)) {
                return Ok(reply);
            }
            let reply = self.reply().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            self.early.insert(reply.number, reply);
        }
    }

    /// Reads the bytes that have arrived; returns whether the connection goes on. An end inside of an answer is an error.
    async fn read(&mut self) -> io::Result<bool> {
        let mut piece = [0; 4096];
        let count = match self.stream.read(&mut piece).await {
            // A server that closes TLS without a close_notify has closed it all the same.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            read => read?,
        };
        if count == 0 && !self.answers.is_between() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.answers.push(&piece[..count]);
        Ok(count > 0)
    }
}
