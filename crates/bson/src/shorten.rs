//! Truncation of long texts in messages.

/// Bytes after which a string is truncated.
pub(crate) const STRING_BYTES_MAX: usize = 160;

/// Returns at most [`STRING_BYTES_MAX`] bytes of a text, for use in a message.
pub(crate) fn shorten(text: &str) -> &str {
    if text.len() <= STRING_BYTES_MAX {
        return text;
    }
    let end = (0..=STRING_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}
