//! The codec against recorded frames, and against bytes that no client should send.

mod hostile;
mod properties;
mod recorded;
